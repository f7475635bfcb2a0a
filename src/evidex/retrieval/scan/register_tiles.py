"""The innermost loops of a batch scan, written straight for the vector registers.

A tile multiplies a few gallery rows by a group of queries and keeps all sums in registers, so that every gallery value
is read once for the whole group. LLVM's own vectoriser does not find this shape from Python loops, hence the explicit
instructions. Queries lie along the vector lanes; a gallery value is broadcast to all of them.

The dot product of a row and a query is accumulated in the order of the dimensions wherever the row lies, so equal rows
get bit-equal scores.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

# Where numba is told to compile for another processor, nothing beyond the common instructions is taken for granted.
_FEATURES = {} if config.CPU_NAME or config.CPU_FEATURES else binding.get_host_cpu_features()
_WIDE_REGISTERS = bool(_FEATURES.get("avx512f"))

HAS_INT8_DOT = _WIDE_REGISTERS and bool(_FEATURES.get("avx512vnni"))
"""Whether the CPU multiplies and adds four 8-bit pairs in one instruction."""

LANES = 16 if _WIDE_REGISTERS else 8
WIDE_VECTORS, WIDE_ROWS = (4, 6) if _WIDE_REGISTERS else (2, 6)
NARROW_VECTORS, NARROW_ROWS = 1, 12
ROW_CHUNK = 4 * LANES
"""Codes in a register."""
WIDE = LANES * WIDE_VECTORS
"""Queries in a full group: 24 (or 12) sums, the query vectors and one broadcast just fill the registers."""
NARROW = LANES * NARROW_VECTORS
"""Queries in a small group."""
PADDING = max(WIDE_ROWS, NARROW_ROWS)
"""Rows a tile may write beyond the last one it was asked for."""

_i32, _i64, _f32 = ir.IntType(32), ir.IntType(64), ir.FloatType()


def _multiply_add_f32(builder: Any, vector: Any, total: Any, value: Any, queries: Any) -> Any:
    name = f"llvm.fma.v{LANES}f32"
    fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
    return builder.call(fma, [value, queries, total])


def _multiply_add_int8(builder: Any, vector: Any, total: Any, value: Any, queries: Any) -> Any:
    quads = ir.VectorType(ir.IntType(8), 4 * LANES)
    signature = ir.FunctionType(vector, [vector, quads, quads])
    dot = cgutils.get_or_insert_function(builder.module, signature, "llvm.x86.avx512.vpdpbusd.512")
    return builder.call(dot, [total, builder.bitcast(value, quads), builder.bitcast(queries, quads)])


def _make_tile(element: Any, vectors: int, rows: int, multiply_add: Callable[..., Any], flip: int | None) -> Any:
    """Build ``tile(queries, gallery, steps, first, last, out, out_row)``; addresses and sizes are int64.

    ``queries`` holds ``steps`` × ``vectors`` registers, ``gallery`` rows of ``steps`` elements of 4 bytes. Rows
    ``first`` to ``first + rows - 1`` are multiplied (those after ``last`` are replaced by ``last``) and their sums
    written to rows ``out_row`` onwards of ``out``. ``flip`` is XORed into every gallery element.
    """
    vector = ir.VectorType(element, LANES)
    splat = ir.Constant(ir.VectorType(_i32, LANES), None)

    def generate(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        query_address, gallery_address, steps, first, last, out_address, out_row = args
        query_data = builder.inttoptr(query_address, vector.as_pointer())
        gallery = builder.inttoptr(gallery_address, element.as_pointer())
        out = builder.inttoptr(out_address, vector.as_pointer())
        row_data = []
        for r in range(rows):
            row = builder.add(first, ir.Constant(_i64, r))
            row = builder.select(builder.icmp_signed("<", row, last), row, last)
            row_data.append(builder.gep(gallery, [builder.mul(row, steps)]))
        sums = [[cgutils.alloca_once(builder, vector) for _ in range(vectors)] for _ in range(rows)]
        for slot in (slot for row_sums in sums for slot in row_sums):
            builder.store(ir.Constant(vector, None), slot)

        with cgutils.for_range(builder, steps) as loop:
            base = builder.mul(loop.index, ir.Constant(_i64, vectors))
            registers = []
            for v in range(vectors):
                register = builder.load(builder.gep(query_data, [builder.add(base, ir.Constant(_i64, v))]))
                register.align = 4
                registers.append(register)
            for r in range(rows):
                value = builder.load(builder.gep(row_data[r], [loop.index]))
                value.align = 1
                if flip is not None:
                    value = builder.xor(value, ir.Constant(_i32, flip))
                undefined = ir.Constant(vector, ir.Undefined)
                lane = builder.insert_element(undefined, value, ir.Constant(_i32, 0))
                broadcast = builder.shuffle_vector(lane, undefined, splat)
                for v in range(vectors):
                    total = builder.load(sums[r][v])
                    builder.store(multiply_add(builder, vector, total, broadcast, registers[v]), sums[r][v])

        for r in range(rows):
            for v in range(vectors):
                row = builder.add(out_row, ir.Constant(_i64, r))
                index = builder.add(builder.mul(row, ir.Constant(_i64, vectors)), ir.Constant(_i64, v))
                written = builder.store(builder.load(sums[r][v]), builder.gep(out, [index]))
                written.align = 4
        return _context.get_dummy_value()

    @intrinsic  # type: ignore[untyped-decorator]
    def tile(
        _typing: Any, queries: Any, gallery: Any, steps: Any, first: Any, last: Any, out: Any, out_row: Any
    ) -> Any:  # fmt: skip
        del queries, gallery, steps, first, last, out, out_row
        return types.void(*[types.int64] * 7), generate

    return tile


def _generate_row_int8(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
    query_address, row_address, chunks = args
    vector = ir.VectorType(_i32, LANES)
    query, row = (builder.inttoptr(address, vector.as_pointer()) for address in (query_address, row_address))
    total = cgutils.alloca_once(builder, vector)
    builder.store(ir.Constant(vector, None), total)
    signs = ir.Constant(vector, [_SIGN_BITS] * LANES)
    with cgutils.for_range(builder, chunks) as loop:
        values, codes = (builder.load(builder.gep(data, [loop.index])) for data in (row, query))
        values.align = codes.align = 1
        unsigned = builder.xor(values, signs)
        builder.store(_multiply_add_int8(builder, vector, builder.load(total), unsigned, codes), total)
    reduce = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(_i32, [vector]), f"llvm.vector.reduce.add.v{LANES}i32"
    )
    return builder.sext(builder.call(reduce, [builder.load(total)]), _i64)


@intrinsic  # type: ignore[untyped-decorator]
def row_int8(_typing: Any, query: Any, row: Any, chunks: Any) -> Any:
    """Dot product of one row of codes (the sign bits flipped) and one query, ``chunks`` registers long each."""
    del query, row, chunks
    return types.int64(types.int64, types.int64, types.int64), _generate_row_int8


# Signed codes become unsigned by flipping their sign bit, which adds 128: the instruction wants one unsigned factor.
_SIGN_BITS = 0x80808080

wide_f32 = _make_tile(_f32, WIDE_VECTORS, WIDE_ROWS, _multiply_add_f32, None)
narrow_f32 = _make_tile(_f32, NARROW_VECTORS, NARROW_ROWS, _multiply_add_f32, None)
wide_int8 = _make_tile(_i32, WIDE_VECTORS, WIDE_ROWS, _multiply_add_int8, _SIGN_BITS)
narrow_int8 = _make_tile(_i32, NARROW_VECTORS, NARROW_ROWS, _multiply_add_int8, _SIGN_BITS)
