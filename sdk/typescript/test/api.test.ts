/** Compares `src/api.ts` with the documents of the API, in both directions. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import ts from "typescript";
import { tree } from "./daemon.js";

/** What a WebSocket carries, which this package does not use. */
const LEFT_OUT = ["AttachNotice", "AttachQuery", "AttachRequest"];

/** The operations, and the type of the query of each. Those of no method here are for administrators. */
const OPERATIONS: Record<string, string | undefined> = {
  "GET /healthz": undefined,
  "GET /metrics": undefined,
  "GET /openapi.json": undefined,
  "GET /v1": undefined,
  "GET /v1/events": "EventsQuery",
  "POST /v1/forget": undefined,
  "POST /v1/links": undefined,
  "POST /v1/links/trade": undefined,
  "GET /v1/nodes": undefined,
  "DELETE /v1/nodes/{node}": undefined,
  "POST /v1/nodes/{node}/drain": undefined,
  "GET /v1/processes": "ListQuery",
  "POST /v1/processes": undefined,
  "DELETE /v1/processes/{id}": "ForgetQuery",
  "GET /v1/processes/{id}": undefined,
  "GET /v1/processes/{id}/attach": "AttachQuery",
  "GET /v1/processes/{id}/follow": "FollowQuery",
  "GET /v1/processes/{id}/output": "OutputQuery",
  "GET /v1/processes/{id}/output/lines": "LinesQuery",
  "GET /v1/processes/{id}/output/search": "SearchQuery",
  "GET /v1/processes/{id}/output/times": "TimesQuery",
  "GET /v1/processes/{id}/receipt": undefined,
  "POST /v1/processes/{id}/resize": undefined,
  "POST /v1/processes/{id}/signal": undefined,
  "POST /v1/processes/{id}/stdin": "WriteQuery",
  "POST /v1/processes/{id}/stop": undefined,
  "GET /v1/processes/{id}/survivors": undefined,
  "POST /v1/processes/{id}/wait": undefined,
  "POST /v1/shutdown": undefined,
  "POST /v1/signal": undefined,
  "POST /v1/stop": undefined,
  "POST /v1/tickets": undefined,
  "GET /v1/tokens": undefined,
  "POST /v1/tokens": undefined,
  "DELETE /v1/tokens/{token}": undefined,
  "POST /v1/upgrade": undefined,
  "POST /v1/wait": undefined,
};

interface Schema {
  $ref?: string;
  const?: string;
  enum?: string[];
  oneOf?: Schema[];
  anyOf?: Schema[];
  type?: string | string[];
  items?: Schema;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: boolean | Schema;
  patternProperties?: Record<string, Schema>;
}

interface Parameter {
  name: string;
  in: string;
}

interface OpenApi {
  components: { schemas: Record<string, Schema> };
  paths: Record<string, Record<string, { parameters?: Parameter[] }>>;
}

const openapi: OpenApi = JSON.parse(readFileSync(join(tree, "crates/wire/openapi.json"), "utf8"));
const schema: { $defs: Record<string, Schema> } = JSON.parse(
  readFileSync(join(tree, "crates/wire/schema.json"), "utf8"),
);

/** The type of a schema in one spelling: sorted, without null. */
function fromSchema(schema: Schema): string {
  if (schema.$ref !== undefined) return nameOf(schema.$ref.split("/").at(-1) ?? "");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum !== undefined) return union(schema.enum.map((value) => JSON.stringify(value)));
  const alternatives = schema.oneOf ?? schema.anyOf;
  if (alternatives !== undefined) {
    return union(alternatives.filter(({ type }) => type !== "null").map(fromSchema));
  }
  const types = [schema.type ?? []].flat().filter((type) => type !== "null");
  switch (types[0]) {
    case "array":
      return `Array<${fromSchema(schema.items ?? {})}>`;
    case "object":
      return fromObject(schema);
    case "integer":
      return "number";
    default:
      return types[0] ?? "unknown";
  }
}

function fromObject({ properties, required = [], additionalProperties, patternProperties }: Schema): string {
  if (properties !== undefined) {
    const member = ([name, value]: [string, Schema]) =>
      `${name}${required.includes(name) ? "" : "?"}: ${fromSchema(value)}`;
    return `{${Object.entries(properties).map(member).sort().join("; ")}}`;
  }
  const value = typeof additionalProperties === "object" ? additionalProperties : undefined;
  const values = value ?? Object.values(patternProperties ?? {})[0];
  if (values === undefined) return "Record<string, never>";
  const isNullable = [values.type].flat().includes("null");
  return `Record<string, ${union([fromSchema(values), ...(isNullable ? ["null"] : [])])}>`;
}

/** A union of unions is one union, in any order. */
function union(members: string[]): string {
  return [...new Set(members.flatMap((member) => (member.includes("{") ? [member] : member.split(" | "))))]
    .sort()
    .join(" | ");
}

/** `Error` is a class of JavaScript. */
function nameOf(name: string): string {
  return name === "Error" ? "ErrorAnswer" : name;
}

/** The same spelling of a type in TypeScript. */
function fromType(node: ts.TypeNode): string {
  if (ts.isUnionTypeNode(node)) return union(node.types.map(fromType));
  if (ts.isArrayTypeNode(node)) return `Array<${fromType(node.elementType)}>`;
  if (ts.isParenthesizedTypeNode(node)) return fromType(node.type);
  if (ts.isTypeLiteralNode(node)) return fromMembers(node.members);
  if (ts.isTypeReferenceNode(node) && node.typeArguments !== undefined) {
    return `${node.typeName.getText()}<${node.typeArguments.map(fromType).join(", ")}>`;
  }
  return node.getText();
}

function fromMembers(members: ts.NodeArray<ts.TypeElement>): string {
  const text = members.filter(ts.isPropertySignature).map((member) => {
    if (member.type === undefined) throw new Error(`no type: ${member.getText()}`);
    return `${member.name.getText()}${member.questionToken === undefined ? "" : "?"}: ${fromType(member.type)}`;
  });
  return `{${text.sort().join("; ")}}`;
}

function declaredTypes(): Map<string, string> {
  const path = join(import.meta.dirname, "../../src/api.ts");
  const file = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.ES2022, true);
  const types = new Map<string, string>();
  for (const node of file.statements) {
    if (ts.isInterfaceDeclaration(node)) types.set(node.name.text, fromMembers(node.members));
    else if (ts.isTypeAliasDeclaration(node)) types.set(node.name.text, fromType(node.type));
  }
  return types;
}

/** Every schema of both documents, by the name it has here. */
function definedTypes(): Map<string, string> {
  const all = { ...schema.$defs, ...openapi.components.schemas };
  const kept = Object.entries(all).filter(([name]) => !LEFT_OUT.includes(name));
  return new Map(kept.map(([name, value]) => [nameOf(name), fromSchema(value)]));
}

const sorted = (types: Map<string, string>) => Object.fromEntries([...types].sort());

test("every type of the API is declared, member by member, and no other", () => {
  assert.deepEqual(sorted(declaredTypes()), sorted(definedTypes()));
});

test("every operation and each of its parameters is known", () => {
  const found = Object.entries(openapi.paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(
      ([method, operation]) => [`${method.toUpperCase()} ${path}`, operation] as const,
    ),
  );
  assert.deepEqual(found.map(([name]) => name).sort(), Object.keys(OPERATIONS).sort());
  for (const [name, { parameters = [] }] of found) {
    const query = parameters
      .filter((parameter) => parameter.in === "query")
      .map((parameter) => parameter.name);
    const known = Object.keys(schema.$defs[OPERATIONS[name] ?? ""]?.properties ?? {});
    assert.deepEqual(query.sort(), known.sort(), name);
  }
});

test("a member that is added to the API is noticed", () => {
  const before = fromSchema(schema.$defs["Wait"] ?? {});
  const grown = structuredClone(schema.$defs["Wait"] ?? {});
  grown.properties = { ...grown.properties, more: { type: "string" } };
  assert.notEqual(fromSchema(grown), before);
  assert.equal(declaredTypes().get("Wait"), before);
});

test("the version is that of the workspace", () => {
  const cargo = readFileSync(join(tree, "Cargo.toml"), "utf8");
  const version = /\[workspace\.package\][^[]*?\nversion = "([^"]+)"/.exec(cargo)?.[1];
  const read = (path: string) => JSON.parse(readFileSync(join(import.meta.dirname, "../..", path), "utf8"));
  assert.equal(read("package.json").version, version);
  assert.equal(read("package-lock.json").version, version);
});
