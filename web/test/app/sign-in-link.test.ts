import { expect, test } from "vitest";
import { detailText } from "../../src/app/settings/settings-audit";
import { linkSecret } from "../../src/app/sign-in/public-pages";

test("a sign-in link has its kind and its secret behind the hash", () => {
  expect(linkSecret("#sign-in:abc_-1")).toEqual({ setsPassword: false, secret: "abc_-1" });
  expect(linkSecret("#password:abc")).toEqual({ setsPassword: true, secret: "abc" });
  for (const other of ["", "#", "#abc", "#sign-in:", "#other:abc"]) expect(linkSecret(other)).toBeNull();
});

test("the details of an event are words and values, without what is empty", () => {
  const details = { role: "member", before: "viewer", revoked_tokens: 2, scopes: ["read"], expires: null, new: false };
  expect(detailText(details)).toBe('role: member, before: viewer, revoked_tokens: 2, scopes: ["read"]');
});
