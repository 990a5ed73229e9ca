"""What the site shows beyond the pages: references that whoever browses the repository reads as the files that they are."""

import csv
import re
from pathlib import Path

REFERENCE = re.compile(r"<!-- site: (\S+) -->")
COMMAND = re.compile(r"^(weir .*)\n=+\n", re.MULTILINE)


def on_page_markdown(markdown, page, config, **_):
    root = Path(config.config_file_path).parent
    return REFERENCE.sub(lambda match: shown(root / match[1]), markdown)


def shown(file):
    if file.suffix == ".csv":
        rows = list(csv.reader(file.open(newline="")))
        return "\n".join(row(cells) for cells in [rows[0], ["---"] * len(rows[0]), *rows[1:]])
    if file.suffix == ".yaml":
        return f"```yaml\n{file.read_text()}```"
    _, *commands = COMMAND.split(file.read_text())
    return "\n".join(f"## {name}\n\n```text\n{text.strip()}\n```\n" for name, text in zip(commands[::2], commands[1::2]))


def row(cells):
    return "| " + " | ".join(cell.replace("|", "\\|").replace("_", "\\_") for cell in cells) + " |"
