"""Reports: the web page, figures, moving pictures and Markdown tables."""
