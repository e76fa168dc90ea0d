"""From statements to pages, figures, moving pictures and Markdown tables."""
