"""Which kernel for which product: the menu, the model that predicts, the tables that were measured."""
