"""A model's name or path to a folder on this machine, fetched once from the model hub where a network is there."""

from __future__ import annotations

import logging
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from evidex.documents import is_folder
from evidex.errors import ModelError
from evidex.files import at_home

_CONNECT_SECONDS = 10.0
_HUB_NAME = re.compile(r"(\w[\w.-]*/)?\w[\w.-]*")
_SIDE_FILES = (".json", ".txt", ".model")
_REMEDY = "give a local model folder instead"


def model_folder(name_or_folder: str | Path) -> Path:
    """Return the folder of a model: a path is taken as it is, a hub name is fetched or found in the hub's cache."""
    folder = at_home(name_or_folder)
    if is_folder(folder):
        return folder
    name = str(name_or_folder)
    if not _HUB_NAME.fullmatch(name):
        raise ModelError(f"'{name}' is neither a model folder nor a hub name (owner/model); {_REMEDY}")
    reason = _unreachable()
    return _fetch(name) if reason is None else _cached(name, reason)


def _unreachable() -> str | None:
    """Return why the hub cannot be reached, or None. Asked first because the hub's client retries for minutes."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    try:
        request = urllib.request.Request(constants.ENDPOINT, method="HEAD")
        with urllib.request.urlopen(request, timeout=_CONNECT_SECONDS):
            return None
    except urllib.error.HTTPError:
        return None
    except urllib.error.URLError as error:
        down = isinstance(error.reason, (socket.gaierror, TimeoutError, ConnectionError))
        return f"no connection to {constants.ENDPOINT}" if down else None
    except (TimeoutError, ConnectionError):
        return f"no connection to {constants.ENDPOINT}"


def _cached(name: str, reason: str) -> Path:
    from huggingface_hub import try_to_load_from_cache

    config = try_to_load_from_cache(name, "config.json")
    if isinstance(config, str):
        return Path(config).parent
    raise ModelError(f"'{name}' is no folder here and cannot be fetched from the model hub: {reason}; {_REMEDY}")


def _fetch(name: str) -> Path:
    from huggingface_hub import HfApi, snapshot_download

    try:
        siblings = HfApi().model_info(name).siblings or []
        wanted = wanted_files(sibling.rfilename for sibling in siblings)
        return Path(snapshot_download(name, allow_patterns=wanted))
    except (OSError, ValueError) as error:
        cause = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(f"'{name}' cannot be fetched from the model hub ({cause}); {_REMEDY}") from error


def wanted_files(names: Iterable[str]) -> list[str]:
    """Choose the top-level files to fetch: settings, tokenizer and one form of the weights, safetensors before .bin."""
    top = sorted(name for name in names if "/" not in name)
    weights = [name for name in top if name.startswith("model") and name.endswith(".safetensors")]
    if not weights:
        weights = [name for name in top if name.startswith("pytorch_model") and name.endswith(".bin")]
    return [name for name in top if name.endswith(_SIDE_FILES)] + weights


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Keep transformers' progress bars and warnings off the terminal; what they warn about is checked by the caller."""
    from transformers.utils import logging as transformers_logging

    level = transformers_logging.get_verbosity()
    bars = transformers_logging.is_progress_bar_enabled()
    transformers_logging.set_verbosity(logging.ERROR)
    transformers_logging.disable_progress_bar()
    try:
        yield
    finally:
        transformers_logging.set_verbosity(level)
        if bars:
            transformers_logging.enable_progress_bar()
