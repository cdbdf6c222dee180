"""Share models as stores are shared: push into a list, verify a list, pull from it."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from obygaze_features.arguments import checked
from obygaze_features.errors import OutputError, StoreError
from obygaze_features.io import (
    NO_LICENCE,
    PARTIAL_SUFFIX,
    file_sha256,
    local_folder,
    naming,
    remove_tree,
    sha256_of,
    sync,
)
from obygaze_features.locks import alone_in
from obygaze_features.schema import misfit
from obygaze_features.store.objects import download_file, files_in, put_with_list
from obygaze_features.templates import filled
from obygaze_features.text import file_name
from obygaze_features.untrusted import MAX_TOML_BYTES, read_bytes
from obygaze_models.errors import ModelError
from obygaze_models.persistence.card import PROTOCOL
from obygaze_models.persistence.evidence import evidence_line
from obygaze_models.persistence.model_file import ModelFile, audit, construct, find_bytes
from obygaze_models.persistence.zoo_list import (
    LIST,
    Entry,
    default_zoo,
    entry_of,
    find_entry,
    is_name,
    parse_list,
    read_entry,
    read_page,
    read_zoo,
    write_list,
)


@checked
def push_model(
    model: Path | str, zoo: Path | str, name: str, version: str = "1.0.0", *, notes: str = ""
) -> Entry:
    """Add a model and its page to a list of shared models; a version that exists is never replaced.

    Parameters
    ----------
    model : Path or str
        The model's file, or its URL.
    zoo : Path or str
        A folder, s3://BUCKET/FOLDER or hf://datasets/OWNER/NAME[/FOLDER].
    name, version : str
    notes : str
        Text by the model's makers, as Markdown, which comes first on its page.

    Raises
    ------
    ModelError
        The model states no licence; or its name is no file's name; or another model in the list has this name
        and version; or the folder or URL of the list cannot be written to.

    Examples
    --------
    >>> import obygaze_models as om
    >>> om.push_model("kept/linear.model", "zoo", "hn-linear").label
    'hn-linear@1.0.0'
    >>> om.load_model(om.pull_model("hn-linear", "copies", zoo="zoo")).card.model
    'linear'
    """
    # --- check the model
    location, data = find_bytes(model)
    file = audit(location, data)
    construct(file)  # raises if card and arrays don't fit together
    _refuse_unshareable(file, name)

    # --- make its entry and its page
    # The entry has the digest of the page, which is written from the entry's other fields.
    no_digest = "0" * 64
    entry_without_page = entry_of(file.card, data, name, version, page_sha256=no_digest)
    page = model_page(entry_without_page, file, notes).encode("utf-8")
    entry = msgspec.structs.replace(entry_without_page, page_sha256=sha256_of(page))
    _check_entry(entry)

    # --- add them to the list
    def new_list(present_list: bytes | None) -> bytes:
        """Return the list of models with the new entry, given the bytes of the present list, if any."""
        entries = [] if present_list is None else parse_list(present_list, zoo)
        return write_list(_with_entry(entries, entry, zoo))

    try:
        put_with_list(zoo, LIST, new_list, {entry.file: data, entry.page: page}, MAX_TOML_BYTES)
    except (OutputError, StoreError) as error:
        raise error if isinstance(error, ModelError) else ModelError(str(error)) from None
    return entry


def _refuse_unshareable(file: ModelFile, name: str) -> None:
    """Raise if a model must not be shared, or not under a name.

    Without a licence others may not use it; and a name that some systems cannot write, such as CON, can't be
    that of a file in a list.
    """
    if file.card.licence == NO_LICENCE:
        raise ModelError(
            f"{name}: no licence is recorded in the model, without one others may not use it; "
            "keep it anew with one: obygaze evaluate ... --save MODEL --licence CC-BY-4.0 (or another)"
        )
    if file_name(name) != name:
        raise ModelError(f"{name}: a name that some systems cannot write as a file's; choose another")


def _with_entry(entries: Sequence[Entry], entry: Entry, zoo: Path | str) -> list[Entry]:
    """Add an entry at the end of a list; raise if the list has another of this name and version.

    A name that differs from a listed one in capitals alone is refused too: some systems take the files of
    both for one, so that the older model would be replaced.

    `zoo` is the list's folder or URL, for the message.
    """
    # An equal entry is of the same model, which was pushed before.
    others = [listed for listed in entries if listed != entry]
    if entry.label in [listed.label for listed in others]:
        raise ModelError(
            f"{zoo}: another model, or page of it, is {entry.label} there, and a version is never "
            "replaced: give another --version"
        )
    for listed in others:
        differs_in_capitals = listed.name != entry.name and listed.name.lower() == entry.name.lower()
        if differs_in_capitals:
            raise ModelError(
                f"{zoo}: {listed.name} is there, from which {entry.name} differs in capitals alone, and some "
                f"systems take their files for one: give another --name, or {listed.name}"
            )
    return [*others, entry]


def _check_entry(entry: Entry) -> None:
    """Raise a ModelError if a field of an entry is not as `Entry` requires.

    msgspec checks fields only when it converts other values to an entry, not when one is made in Python.
    """
    try:
        msgspec.convert(msgspec.to_builtins(entry), Entry)
    except msgspec.ValidationError as error:
        raise ModelError(f"{entry.label}: can't be listed: {misfit(error)}") from None


@checked
def pull_model(
    name: str,
    folder: Path | str,
    *,
    zoo: Path | str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Copy a model of a list into a folder, and check its digest. A stopped copy resumes.

    Parameters
    ----------
    name : str
        NAME for the highest version, or NAME@VERSION.
    folder : Path or str
        Where the model's file is put.
    zoo : Path or str, optional
        Folder or URL of the list; None for $OBYGAZE_ZOO, or the models shipped.
    progress : callable, optional
        Called with the number of bytes copied so far, and the number of all.

    Returns
    -------
    Path
        The model's file in the folder.

    Raises
    ------
    ModelError
        There is no such model; or the folder is an address, or has a different file of this name; or the copy
        is not the file that was listed, or is no model.

    Examples
    --------
    >>> import obygaze_models as om
    >>> _ = om.push_model("kept/attention.model", "lists/lab", "lab-attention")
    >>> om.pull_model("lab-attention", "pulled", zoo="lists/lab").name
    'lab-attention-1.0.0.model'
    """
    place = zoo or default_zoo()
    entry = find_entry(name, place)
    try:
        target = local_folder(folder) / entry.file
    except OutputError as error:
        raise ModelError(str(error)) from None
    part_folder = target.with_name(f"{entry.file}{PARTIAL_SUFFIX}")  # where a stopped copy leaves its part
    if target.exists():
        if file_sha256(target) != entry.sha256:
            raise ModelError(f"{target}: another file is there; name another folder, or remove it")
        _remove_leftovers(part_folder)
        return target
    try:
        _download_model(entry, place, part_folder, target, progress)
    except StoreError as error:
        raise ModelError(str(error)) from None
    return target


def _download_model(
    entry: Entry,
    zoo: Path | str,
    part_folder: Path,
    target: Path,
    progress: Callable[[int, int], None] | None,
) -> None:
    """Download a model of a list into the folder `part_folder`, check it, and move it to `target`.

    A download that was stopped leaves its part in `part_folder`, from which the next one resumes.

    Raises
    ------
    ModelError
        The file is larger than the list says, or is no model.
    StoreError
        The file cannot be read or written, or its digest is not that of the list.
    """
    location = f"{zoo}/{entry.file}"

    def check_size(_name: str, n_copied: int, _more: int) -> None:
        """Raise if more bytes have come than the list says; otherwise report how many have come.

        `download_file` calls it with these three arguments after each part.
        """
        if n_copied > entry.octets:
            raise ModelError(f"{location}: more comes than is listed ({entry.octets} bytes)")
        if progress is not None:
            progress(n_copied, entry.octets)

    # No other process writes here meanwhile, and errors name the file that is to be written.
    with alone_in(part_folder, "pulling this model"), naming(target):
        partial = part_folder / entry.sha256
        download_file(files_in(zoo, links=True), entry.file, partial, entry.sha256, check_size)
        try:
            audit(location, read_bytes(partial))
        except ModelError:
            # A file that is no model is not kept.
            remove_tree(part_folder)
            raise
        # First the file's bytes are written to the disk, and then the folder with its new name.
        sync(partial)
        partial.replace(target)
        remove_tree(part_folder)
        sync(target.parent)


def _remove_leftovers(part_folder: Path) -> None:
    """Remove the folder of a copy that was interrupted after its file was complete, if there is one.

    A folder that another process is using is left alone.
    """
    # The error is raised if another process holds the folder.
    with suppress(StoreError):
        if part_folder.is_dir():
            with alone_in(part_folder, "pulling this model"):
                remove_tree(part_folder)


def describe_model(model: str, zoo: Path | str | None = None) -> tuple[ModelFile, str]:
    """Read a model, from a list or a file, and its page as Markdown; nothing in the file is executed.

    Parameters
    ----------
    model : str
        NAME or NAME@VERSION of a list, a path, or a URL.
    zoo : Path or str, optional
        Folder or URL of the list; None for $OBYGAZE_ZOO, or the models shipped.

    Raises
    ------
    ModelError
        There is no such model, or the file is no model.
    """
    if not is_name(model):
        location, data = find_bytes(model)
        file = audit(location, data)
        # A file that is in no list has no version and no stored page.
        entry = entry_of(file.card, data, name=file.card.model, version="", page_sha256="")
        return file, model_page(entry, file, location=model)
    place = zoo or default_zoo()
    entry = find_entry(model, place)
    location, data = read_entry(entry, place)
    file = audit(location, data)
    stored_page = read_page(entry, place)
    return file, stored_page or model_page(entry, file)


TITLES = {
    "within_movie_auc": "AUC within a film",
    "average_precision": "average precision",
    "qwk": "quadratic weighted kappa",
}
"""Name of each metric of a list's entries -> its name on pages."""


def model_page(entry: Entry, file: ModelFile, notes: str = "", location: str = "") -> str:
    """Write a model's page as Markdown, with the front matter that the Hub reads.

    Parameters
    ----------
    entry : Entry
        The model's entry in a list.
    file : ModelFile
    notes : str
        Text by the model's makers, as Markdown, which comes first on the page.
    location : str
        The path of the model's file, if the model is in no list.
    """
    card = file.card
    classes = [" or ".join(levels) for levels in card.target["classes"]]
    positive_class_first = list(reversed(classes))
    values = {
        "entry": entry,
        "card": card,
        "evidence": evidence_line(card.evidence, card.levels_left_out or ()),
        "format_number": PROTOCOL,
        "distances": file.other_arrays.get("reach_distances"),  # None for a joint model
        "notes": notes.strip(),
        "where": location,
        "titles": TITLES,
        "classes": " against ".join(positive_class_first),
    }
    filters = {"number": _three_decimals}
    return filled("obygaze_models.persistence", "model.md.jinja", values, filters=filters)


def _three_decimals(value: float | None) -> str:
    """Format a number with three decimals; "" for None."""
    return "" if value is None else f"{value:.3f}"


@checked
def verify_models(zoo: Path | str | None = None) -> list[tuple[Entry, str]]:
    """Read every model of a list, and check its digest, its file, its page, and its entry against its card.

    Returns
    -------
    list of (entry, problem)
        The problem is "" if there is none.

    Raises
    ------
    ModelError
        There is no list.

    Examples
    --------
    >>> import obygaze_models as om
    >>> _ = om.push_model("kept/linear.model", "lists/own", "lab-linear")
    >>> [(entry.label, problem) for entry, problem in om.verify_models("lists/own")]
    [('lab-linear@1.0.0', '')]
    """
    place = zoo or default_zoo()
    return [(entry, _find_problem(entry, place)) for entry in read_zoo(place)]


def _find_problem(entry: Entry, zoo: Path | str) -> str:
    """Read a model of a list and its page, and return what is wrong with them; "" if nothing is."""
    try:
        location, data = read_entry(entry, zoo)
        file = audit(location, data)
        construct(file)
        entry_of_file = entry_of(file.card, data, entry.name, entry.version, entry.page_sha256)
        if entry_of_file != entry:
            return f"{location}: its card says otherwise than the list"
        if not read_page(entry, zoo):
            return f"{zoo}/{entry.page}: is listed, but not there"
    except ModelError as error:
        return str(error)
    return ""
