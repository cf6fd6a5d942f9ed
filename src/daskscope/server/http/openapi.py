"""The OpenAPI document, generated from the declared routes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from daskscope import __version__
from daskscope.server.http.routing import ANYBODY, CONTENT, PUBLIC, Route

ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
        }
    },
}


def document(routes: Sequence[Route]) -> dict[str, Any]:
    bodies = [kind for route in routes for kind in (route.query, route.body) if kind is not None]
    _, components = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "daskscope", "version": __version__, "description": "The flight recorder for Dask."},
        "paths": paths,
        "components": {
            "schemas": {**components, "Error": ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def operation_id(route: Route) -> str:
    """Return a unique name per route: one function may serve several."""
    words = re.findall(r"\w+", route.path.removeprefix("/api/v1"))
    return "_".join([route.method.lower(), *words])


def _operation(route: Route) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    if route.query is not None:
        parameters += _query(route.query)
    if route.access not in (ANYBODY, CONTENT, PUBLIC):
        parameters.append({"name": "account", "in": "query", "required": False, "schema": {"type": "string"}})
    error = {
        "description": "Refused",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
    }
    operation: dict[str, Any] = {
        "operationId": operation_id(route),
        "summary": route.summary,
        "parameters": parameters,
        "responses": {str(route.status): {"description": "Done", "content": {route.answers: {}}}, "default": error},
    }
    if route.access not in (ANYBODY, CONTENT, PUBLIC):
        operation["security"] = [{"token": []}]
        operation["description"] = f"Access: {route.access}."
    if route.body is not None:
        schema = {"$ref": f"#/components/schemas/{route.body.__name__}"}
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    elif route.content:
        binary = {"schema": {"type": "string", "format": "binary"}}
        operation["requestBody"] = {"required": True, "content": {route.content: binary}}
    return operation


def _query(kind: type[msgspec.Struct]) -> list[dict[str, Any]]:
    schema = msgspec.json.schema(kind)
    properties = schema["$defs"][kind.__name__]["properties"]
    required = schema["$defs"][kind.__name__].get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": value}
        for name, value in properties.items()
    ]
