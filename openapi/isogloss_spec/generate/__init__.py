"""From the documents to `generated/isogloss_api`: bundles, models, route stubs, handler protocols."""
