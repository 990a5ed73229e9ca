"""What the site shows beyond the pages of this folder."""

from pathlib import Path

SETTINGS = "<!-- The site shows config/weir.yaml here: docs/hooks.py. -->"


def on_page_markdown(markdown, page, config, **_):
    """Puts the file of settings, which whoever browses the repository sees as it is, into its page."""
    if page.file.src_uri != "settings.md":
        return markdown
    if SETTINGS not in markdown:
        raise ValueError("docs/settings.md does not say where config/weir.yaml goes")
    settings = Path(config.config_file_path).parent / "config" / "weir.yaml"
    return markdown.replace(SETTINGS, f"```yaml\n{settings.read_text()}```")
