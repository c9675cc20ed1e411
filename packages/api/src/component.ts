import { z } from 'zod'

interface ComponentMeta {
  readonly id: string
  readonly description?: string
}

/** Schemas with a name of their own in the OpenAPI document. */
export const components = z.registry<ComponentMeta>()

/**
 * The schemas that accept anything because the core checks the value, each with the schema that documents it. Not a zod registry: a
 * schema as the metadata of another schema does not type-check.
 */
const checkedElsewhere = new WeakMap<z.core.$ZodType, z.ZodType>()

const named = new Map<string, z.ZodType>()

/**
 * Names a schema in the OpenAPI document, and so in generated clients. A module's names begin with its own: `TicketsTicket`.
 * @throws if another schema has the name
 */
export function component<Schema extends z.ZodType>(id: string, schema: Schema, description?: string): Schema {
  if (named.has(id)) throw new Error(`expected a name that no other schema has, got ${id}: choose another`)
  named.set(id, schema)
  components.add(schema, description === undefined ? { id } : { id, description })
  return schema
}

/**
 * A schema that is documented and typed as `schema` but accepts anything: the core checks the value, because it can say what
 * is wrong with a cron expression or a target. `documented-schedules.test.ts` of the server compares `schema` with the core.
 */
export function checkedByCore<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.input<Schema>, z.input<Schema>> {
  // Not z.custom: for an absent field, zod would add a message of its own.
  const passing = z.unknown() as z.ZodType<z.input<Schema>, z.input<Schema>>
  checkedElsewhere.set(passing, schema)
  return passing
}

/** The schema that the OpenAPI document shows for `schema`: the one behind `checkedByCore`, otherwise `schema` itself. */
export function documented(schema: z.core.$ZodType): z.core.$ZodType {
  return checkedElsewhere.get(schema) ?? schema
}
