"""The method of lines: features in space, a collocation method in time, and features that adapt themselves."""
