import { z } from 'zod'

import { components, documented } from './component.ts'

/** JSON that the document consists of. */
export type JsonObject = Record<string, unknown>

/** Refers to a component by its URI, and to a union of components by `oneOf`. A schema without a name is written out. */
export function reference(schema: z.core.$ZodType): JsonObject {
  const shown = documented(schema)
  const id = components.get(shown)?.id
  if (id !== undefined) return { $ref: componentUri(id) }
  if (shown instanceof z.ZodUnion && shown.options.every((option) => components.has(documented(option)))) {
    return { oneOf: shown.options.map((option) => reference(option)) }
  }
  const { $schema: _dialect, ...written } = toJsonSchema(shown)
  return written
}

function componentUri(id: string): string {
  return `#/components/schemas/${id}`
}

/** The components that the paths refer to, directly or through another one. Modules that are not served may have named others. */
export function referredSchemas(paths: JsonObject): JsonObject {
  const all = componentSchemas()
  const referred = new Set<string>()
  const waiting: unknown[] = [paths]
  for (const part of waiting) {
    for (const [, id = ''] of JSON.stringify(part).matchAll(/"#\/components\/schemas\/(\w+)"/g)) {
      if (referred.has(id)) continue
      referred.add(id)
      waiting.push(all[id])
    }
  }
  return Object.fromEntries(Object.entries(all).filter(([id]) => referred.has(id)))
}

function componentSchemas(): JsonObject {
  const { schemas } = z.toJSONSchema(components, {
    uri: componentUri,
    io: 'input',
    unrepresentable: 'any',
    override: ({ zodSchema, jsonSchema }) => {
      const shown = documented(zodSchema)
      const named = components.get(shown)
      if (shown !== zodSchema && named !== undefined) jsonSchema.$ref = componentUri(named.id)
      else if (named?.description !== undefined) jsonSchema.description ??= named.description
      simplify(jsonSchema)
    },
  })
  return Object.fromEntries(
    Object.entries(schemas)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([id, { $schema: _dialect, $id: _uri, ...schema }]) => [id, schema]),
  )
}

/** A schema as the document shows it, written out. */
export function toJsonSchema(schema: z.core.$ZodType): JsonObject {
  return z.toJSONSchema(schema, {
    io: 'input',
    unrepresentable: 'any',
    override: ({ jsonSchema }) => simplify(jsonSchema),
  })
}

/** Removes what tells a reader nothing: a pattern where there is a format, and the bounds of safe integers. */
function simplify(schema: JsonObject): void {
  if (schema['format'] !== undefined) delete schema['pattern']
  if (schema['minimum'] === Number.MIN_SAFE_INTEGER) delete schema['minimum']
  if (schema['maximum'] === Number.MAX_SAFE_INTEGER) delete schema['maximum']
}
