"""The floor: a sentence field, three heatmaps, three bar charts and a table of the page's size; nothing computed.

With ATTNVIZ_LEAN set, without Streamlit's theme, which alone costs a fifth of the time.
"""

import os

import plotly.graph_objects as go
import streamlit as st

st.set_page_config(layout="wide")
theme = None if os.environ.get("ATTNVIZ_LEAN") else "streamlit"
text = st.text_input("Sentence", "one", key="text")
words = text.split()
size = range(len(words) + 2)
values = [[((i * 7 + j * 3 + len(text)) % 10) / 10 for j in size] for i in size]
columns = st.columns(3)
for number, column in enumerate(columns):
    figure = go.Figure(go.Heatmap(z=values, zmin=0, zmax=1))
    figure.update_layout(height=420, title=text)
    column.plotly_chart(figure, theme=theme, key=f"heat{number}")
for number, column in enumerate(st.columns(3)):
    figure = go.Figure(go.Bar(y=values[number]))
    figure.update_layout(height=196, title=text)
    column.plotly_chart(figure, theme=theme, key=f"bars{number}")
cells = "".join(f"<tr><td>{name}</td>{'<td>0.12 ± 0.34</td>' * 3}</tr>" for name in words[:10])
st.html(f"<table>{cells}</table>")
