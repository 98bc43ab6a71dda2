"""From the documents to `generated/isogloss_api`: bundles, models, route stubs, handler protocols."""

from isogloss_spec.generate.package import generate_package

__all__ = ["generate_package"]
