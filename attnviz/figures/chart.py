"""A plotly figure together with what it says in words."""

import plotly.graph_objects as go


class Chart(go.Figure):
    """A figure, with a `description` of what it shows (plain text, not escaped) and whether it is `dark`.

    Both are also in `layout.meta`, for the browser.
    """

    def __init__(self, *args, description: str = "", dark: bool = False, **kwargs):
        super().__init__(*args, **kwargs)
        self._description, self._dark = description, dark

    @property
    def description(self) -> str:
        return self._description

    @property
    def dark(self) -> bool:
        return self._dark

    def __reduce__(self):
        """A copy keeps both."""
        _, (content,) = super().__reduce__()
        return _copied, (content, self.description, self.dark)


def _copied(content: dict, description: str, dark: bool) -> Chart:
    return Chart(content, description=description, dark=dark)
