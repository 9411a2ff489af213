"""The parts of the site that are nbgrad's own: pages of names (`api_pages`), the check that each name has one
(`every_name`), and the groups that they stand in (`name_groups`). Called by `docs/conf.py`."""
