"""`ckm.report`: one self-contained page of HTML, with its plots as SVG."""
