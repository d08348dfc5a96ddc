"""The pages of the dashboard, in the order of the navigation. A page is a folder with `sidebar.py` and `view.py`."""

from dataclasses import dataclass
from importlib import import_module

from dashboard.shell import link_notes


@dataclass(frozen=True)
class Page:
    """title : in the navigation. folder : of its modules. path : in the address, "" for the first page."""

    title: str
    folder: str
    path: str = ""

    def sidebar(self) -> dict:
        """Draw the sidebar -> the choices."""
        link_notes.drop_meaningless()
        return import_module(f"dashboard.{self.folder}.sidebar").show()

    def show(self, chosen: dict) -> None:
        """Draw the page for the sidebar's choices."""
        import_module(f"dashboard.{self.folder}.view").show(chosen)


PAGES = (
    Page("One sentence, several models", "compare"),
    Page("Heads and layers", "heads", "heads"),
    Page("Inside a step", "inside", "inside"),
    Page("Many sentences", "many", "many"),
    Page("Watch it learn", "train", "train"),
    Page("Learn", "learn", "learn"),
)
