import { z } from 'zod'

interface ComponentMeta {
  readonly id: string
  readonly description?: string
}

/** Schemas with a name of their own in the OpenAPI document. */
export const components = z.registry<ComponentMeta>()

const checkedElsewhere = new WeakMap<z.core.$ZodType, z.ZodType>()

/** Gives a schema a name under which documents and generated clients know it. */
export function component<Schema extends z.ZodType>(id: string, schema: Schema, description?: string): Schema {
  components.add(schema, description === undefined ? { id } : { id, description })
  return schema
}

/**
 * Lets anything pass, though it is documented and typed as `schema`: the core checks it, and says what is wrong with a cron
 * expression or a target better than a schema could. A test holds the two together.
 */
export function checkedByCore<Schema extends z.ZodType>(schema: Schema): z.ZodType<z.input<Schema>, z.input<Schema>> {
  // Not z.custom: of that, zod itself says what is wrong when it is not there.
  const passing = z.unknown() as z.ZodType<z.input<Schema>, z.input<Schema>>
  checkedElsewhere.set(passing, schema)
  return passing
}

/** What a schema is documented as: itself, unless the core checks it. */
export function documented(schema: z.core.$ZodType): z.core.$ZodType {
  return checkedElsewhere.get(schema) ?? schema
}
