"""Functions of arrays with torch's signatures."""
