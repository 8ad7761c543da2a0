"""Device files: speeds and memory of an accelerator, our own or the user's."""

from importlib.resources import as_file, files
from pathlib import Path

from sapp_ppb.costs.checks import shown
from sapp_ppb.costs.device import NUMBERS, Device
from sapp_ppb.errors import InputError
from sapp_ppb.files import is_there
from sapp_ppb.readers.formats.yaml_file import read_yaml_document
from sapp_ppb.readers.models.model_notes import unknown_key_notes

KEYS = ("name", *NUMBERS, "devices_per_node")
_FOLDER = files("sapp_ppb.readers") / "devices"


def device_names() -> tuple[str, ...]:
    """
    Names of the devices that come with the package.

    Examples
    --------
    >>> device_names()
    ('910b', 'a100', 'h100', 'h200')
    """
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in _FOLDER.iterdir()))


def read_device(name_or_path: str) -> Device:
    """
    Device of one of our names, or of a YAML or JSON file with the same keys.

    Parameters
    ----------
    name_or_path
        A name, in any case; anything else is a path.

    Raises
    ------
    InputError
        If there is neither such a name nor such a file, or if the file can not be read or
        a value is not allowed, with all faults at once.

    Examples
    --------
    >>> read_device("A100").peak_tflop_per_s
    312.0
    """
    if name_or_path.lower() in device_names():
        with as_file(_FOLDER / f"{name_or_path.lower()}.yaml") as path:
            return _read(path)
    path = Path(name_or_path)
    if not is_there(path) and path.suffix.lower() not in (".yaml", ".yml", ".json"):
        known = ", ".join(device_names())
        raise InputError(
            "--device", [f"{shown(name_or_path)} is no device known here and no file; one of {known}"]
        )
    return _read(path)


def _read(path: Path) -> Device:
    """Device of a file; JSON is YAML too."""
    document = read_yaml_document(path)
    raw = document.value
    if not isinstance(raw, dict):
        fault = f"must hold keys and values: {', '.join(KEYS)} (got {shown(raw)})"
        raise InputError(str(path), [fault, *document.faults])
    faults = list(document.faults)
    # A key that is misspelt would leave a speed at nothing, so none is ignored.
    faults += [note.replace("unknown and ignored", "unknown") for note in unknown_key_notes(raw, KEYS, "")]
    required = [key for key in KEYS if key != "devices_per_node"]
    faults += [f"{key} is missing" for key in required if raw.get(key) is None]
    values = {key: raw[key] for key in KEYS if raw.get(key) is not None}
    stand_ins = {"name": path.stem} | dict.fromkeys(NUMBERS, 1.0)
    try:
        device = Device(**stand_ins | values)
    except InputError as error:
        faults += error.faults
    if faults:
        raise InputError(str(path), faults)
    return device
