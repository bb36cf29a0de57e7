"""Tokens, roles and what they allow."""

from fenceline.errors.base import RefusedError


class UnknownRole(RefusedError):
    """There is no such role."""

    code = "unknown_role"


class UnknownToken(RefusedError):
    """There is no such token."""

    code = "unknown_token"


class InvalidAccess(RefusedError):
    """A setting of a token or a role breaks a rule."""

    code = "invalid_access"


class NotYours(RefusedError):
    """Permissions, or tokens in a tenant, that the one who asks may not hand out."""

    code = "not_yours"


class AlreadyExists(RefusedError):
    """Something of that name is there already."""

    code = "already_exists"


class RoleInUse(RefusedError):
    """The role is built in, or valid tokens have it."""

    code = "role_in_use"
