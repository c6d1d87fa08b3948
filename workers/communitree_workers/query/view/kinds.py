"""Kinds of things that questions ask for and entities are of."""

from __future__ import annotations

#: Entity types, as people and extractors write them, of each kind of thing a question can ask for.
KINDS: dict[str, frozenset[str]] = {
    "people": frozenset({"person", "people", "character", "human", "per", "人物", "人", "角色", "人名"}),
    "places": frozenset({"geo", "location", "place", "gpe", "loc", "city", "country", "地点", "地名", "地理", "地方"}),
    "groups": frozenset({"organization", "organisation", "org", "company", "institution", "group", "组织", "机构"}),
    "events": frozenset({"event", "事件"}),
}
