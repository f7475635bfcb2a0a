"""Configuration files: types, unknown keys, overrides."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evidex.checked import parse, to_table
from evidex.config import Config, EncoderConfig, LossConfig, TrainConfig, load_config, merged
from evidex.errors import ConfigError

CONFIGS = sorted((Path(__file__).parents[1] / "configs").glob("*.toml"))


def _write(path: Path, text: str) -> Path:
    file = path / "config.toml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("path", [path for path in CONFIGS if "benchmark" not in path.name], ids=lambda path: path.stem)
def test_every_configuration_of_the_project_loads(path: Path) -> None:
    config = load_config(path)
    assert parse(Config, to_table(config), "again") == config


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("epochz = 3", "unknown key 'epochz'"),
        ("[train]\nepoch = 3", "unknown key 'epoch'"),
        ("[train]\nepochs = 'many'", "expected int"),
        ("[train]\nepochs = true", "expected int"),
        ("[train]\nbf16 = 1", "expected bool"),
        ("[loss]\nobjective = 'magic'", "choose one of"),
        ("train = 3", "expected a table"),
        ("[loss]\ntemperature = 0.0", r"loss\.temperature = 0\.0; give a number above 0"),
        ("[loss]\ntemperature = nan", "give a number above 0"),
        ("[train]\nbatch_size = 1", "two pairs at least"),
        ("[train]\nwhiten = 1.5", "from 0 to 1"),
        ('[encoder]\nkind = "clip"\n[train]\nwhiten = 0.1', "set 0 for clip"),
        ('[encoder]\nkind = "clip"\n[loss]\nb4 = 0.5', 'not with encoder.kind = "clip"; set it to 0'),
        ('[method]\nname = "pau"\n[loss]\nb4 = 0.5', "loss.b4 = 0.5 .*not with method 'pau'"),
        ('[loss]\nobjective = "infonce"\nb4 = 0.5', "not with method 'infonce'"),
        ("[loss]\nlearn_temperature = true\ntemperature = 0.01", "temperature = 0.01 is not within .* = 0.02 and"),
        ('[loss]\nlearn_temperature = true\nobjective = "infonce"', "not for method 'infonce'; set it false"),
        ("[train]\nevaluate_every = 0", "give a number above 0"),
        ("seed = -1", "seed = -1; give 0 or more"),
        ("[train]\ntext_learning_rate = nan", "text_learning_rate = nan; give 0 or more"),
        ("[train]\nhead_learning_rate = -1.0", "head_learning_rate = -1.0; give 0 or more"),
        ("[loss]\nmargin = nan", "margin = nan; give 0 or more"),
        ("[encoder]\ntext_layers = -3", "text_layers = -3; give 0 or more"),
        ("[encoder]\ntext_hidden = 64", r"encoder\.text_hidden = 64 is for models that are trained on"),
        ("[data]\nforeign = 8", r"data\.foreign = 8 shows texts beside labels, and none are learned"),
        ("[data]\ndegrade = 1.5", "from 0 to 1"),
        ("seed = ", "not readable as TOML"),
        ("seed = " + "9" * 40, "give 0 or more, below"),
        ("seed = " + "9" * 5000, "not readable as TOML"),
        ("[loss]\nb2 = " + "9" * 400, "b2 = inf; give 0 or more"),
        ("[loss]\nb2 = 1e400", "b2 = inf; give 0 or more"),
        ("[encoder]\ndim = 2147483648", r"encoder\.dim = 2147483648; give 1 to 65536"),
        ("output = ''", "output is empty; give a name"),
        ('output = "a\\u0000b"', "output = .*; give plain text"),
        ("[data]\ntrain_split = ' '", r"data\.train_split is empty"),
        ("seed = " + "[" * 5000, "nested too deeply"),
        ("data" + ".a" * 5000 + " = 1", "nested too deeply"),
        ("[train]\nepochs = [[[[[[[[[[1]]]]]]]]]]", "expected int"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(_write(tmp_path, text))
    assert "\n" not in str(caught.value).strip()


@pytest.mark.parametrize(
    "make",
    [
        lambda: LossConfig(temperature=-1.0),
        lambda: LossConfig(b1=0),
        lambda: LossConfig(objective="magic"),  # type: ignore[arg-type]
        lambda: LossConfig(kl="yes"),  # type: ignore[arg-type]
        lambda: replace(Config(), seed=-1),
        lambda: replace(TrainConfig(), epochs=2.5),  # type: ignore[arg-type]
        lambda: EncoderConfig(dim=2**31),
        lambda: Config(encoder=EncoderConfig(kind="clip"), train=TrainConfig(whiten=0.1)),
    ],
)
def test_no_way_of_making_a_configuration_escapes_its_ranges(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigError):
        make()


def test_a_file_of_a_hundred_megabytes_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "large.toml"
    with path.open("wb") as stream:
        stream.truncate(100 << 20)
    with pytest.raises(ConfigError, match="more than 1 MiB"):
        load_config(path)


@pytest.mark.parametrize("override", ["output.x=1", "seed.x=1", "data.path.x=1"])
def test_an_override_of_no_section_is_one_line(tmp_path: Path, override: str) -> None:
    with pytest.raises(ConfigError):
        load_config(_write(tmp_path, "seed = 1\noutput = 'x'\ndata.path = 'y'"), [override])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.toml' does not exist"):
        load_config(tmp_path / "nothing.toml")


def test_overrides_are_toml_values_or_words(tmp_path: Path) -> None:
    path = _write(tmp_path, "seed = 1\n[train]\nepochs = 2")
    config = load_config(
        path, ["train.epochs=5", "train.bf16=true", "output=runs/x", "loss.objective=infonce", "loss.b2=3"]
    )
    assert (config.seed, config.train.epochs, config.train.bf16, config.output) == (1, 5, True, "runs/x")
    assert (config.loss.objective, config.loss.b2) == ("infonce", 3.0)
    with pytest.raises(ConfigError, match=r"write section\.key=value"):
        load_config(path, ["train.epochs"])
    with pytest.raises(ConfigError, match=r"unknown key 'epohcs'"):
        load_config(path, ["train.epohcs=5"])


def test_a_base_is_changed_section_by_section(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "first.toml").write_text("seed = 1\noutput = 'a'\n[train]\nepochs = 2\nbatch_size = 8")
    (tmp_path / "inner" / "second.toml").write_text("base = '../first.toml'\noutput = 'b'\n[train]\nepochs = 3")
    (tmp_path / "third.toml").write_text("base = 'inner/second.toml'\n[loss]\nb2 = 0.5")
    config = load_config(tmp_path / "third.toml", ["train.epochs=4"])
    assert (config.seed, config.output, config.loss.b2) == (1, "b", 0.5)
    assert (config.train.epochs, config.train.batch_size) == (4, 8)
    assert load_config(tmp_path / "inner" / "second.toml").train.epochs == 3


@pytest.mark.parametrize(
    ("bases", "message"),
    [
        (["'0.toml'"], "0.toml' is a base of itself"),
        (["'1.toml'", "'2.toml'", "'../{folder}/0.toml'"], "0.toml' is a base of itself"),
        ([f"'{number + 1}.toml'" for number in range(8)], "8.toml' is the base .* more than 8 files"),
        (["'missing.toml'"], "missing.toml' does not exist"),
        (["'.'"], "is a folder"),
        (["''"], "base = ''; give the path"),
        (["7"], "base = 7; give the path"),
        (['"a\\u0000b"'], "no name that a file can have"),
    ],
)
def test_a_base_that_cannot_be_is_refused_in_one_line(tmp_path: Path, bases: list[str], message: str) -> None:
    for number, base in enumerate(bases):
        (tmp_path / f"{number}.toml").write_text(f"base = {base.format(folder=tmp_path.name)}\nseed = 1")
    (tmp_path / "8.toml").write_text("seed = 2")
    with pytest.raises(ConfigError, match=message) as caught:
        load_config(tmp_path / "0.toml")
    assert "\n" not in str(caught.value)


def test_merging_leaves_both_sides_as_they_were() -> None:
    table, changes = {"a": {"x": 1, "y": 2}, "b": 3}, {"a": {"y": 5}, "c": {"z": 6}}
    assert merged(table, changes) == {"a": {"x": 1, "y": 5}, "b": 3, "c": {"z": 6}}
    assert table == {"a": {"x": 1, "y": 2}, "b": 3}
    assert changes == {"a": {"y": 5}, "c": {"z": 6}}
