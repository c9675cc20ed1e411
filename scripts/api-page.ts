/** The parts of an OpenAPI document that `docs/api.md` shows. */
interface ApiDocument {
  readonly tags: readonly { readonly name: string; readonly description: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, ApiOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, JsonSchema>> }
}

interface ApiOperation {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly summary: string
  readonly description: string
  readonly parameters: readonly {
    readonly name: string
    readonly in: string
    readonly required: boolean
    readonly description?: string
    readonly schema: JsonSchema
  }[]
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>
}

type Content = Readonly<Record<string, { readonly schema: JsonSchema }>>

interface JsonSchema {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly description?: string
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
  readonly oneOf?: readonly JsonSchema[]
}

/** The reference of the API as Markdown, made from its OpenAPI document. */
export function renderApiPage(
  document: ApiDocument,
  problems: readonly { readonly code: string; readonly status: number; readonly title: string }[],
): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ title: `${method.toUpperCase()} ${path}`, operation })),
  )
  return [
    '# The API',
    '',
    'Made from the OpenAPI document, which a running Carillon server shows at `/openapi.json` and as a page at `/docs`. After a',
    'change of the operations, `npm run docs:api` regenerates this page. How to call: [guides/http-api.md](guides/http-api.md).',
    ...document.tags.flatMap(({ name, description }) => [
      '',
      `## ${name}`,
      '',
      description,
      ...operations
        .filter(({ operation }) => operation.tags.includes(name))
        .flatMap(({ title, operation }) => ['', ...renderOperation(title, operation)]),
    ]),
    '',
    '## Problems',
    '',
    'The server answers a request that it refuses with a [Problem](#problem) as `application/problem+json`, and changes nothing.',
    '',
    '| code | status | |',
    '| --- | --- | --- |',
    ...problems.map(({ code, status, title }) => `| \`${code}\` | ${status} | ${title}. |`),
    '',
    '## Schemas',
    ...Object.entries(document.components.schemas).flatMap(([name, schema]) => ['', ...renderSchema(name, schema)]),
    '',
  ].join('\n')
}

function renderOperation(title: string, operation: ApiOperation): string[] {
  const { summary, description, parameters, requestBody, responses } = operation
  return [
    `### \`${title}\``,
    '',
    `${summary}. ${description}`,
    ...(parameters.length === 0
      ? []
      : [
          '',
          '| parameter | in | type | |',
          '| --- | --- | --- | --- |',
          ...parameters.map(
            ({ name, in: place, required, schema, description: text = '' }) =>
              `| \`${name}\`${required ? ' (required)' : ''} | ${place} | ${typeOf(schema)} | ${cell(text)} |`,
          ),
        ]),
    ...(requestBody === undefined ? [] : ['', `Body: ${contentType(requestBody.content)}.`]),
    '',
    ...Object.entries(responses).flatMap(([status, { description: text, content = {} }]) =>
      Number(status) >= 400 ? [] : [`Answer: ${status}, ${contentType(content) || 'no body'}. ${text}`],
    ),
    '',
    `Problem codes: ${refusals(responses).join(', ')}.`,
  ]
}

/** The problem codes that the responses name in their descriptions, each with its status. */
function refusals(responses: ApiOperation['responses']): string[] {
  return Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([status, { description }]) =>
      [...description.matchAll(/`(\w+)`/g)].map(([, code]) => `\`${code}\` (${status})`),
    )
}

function renderSchema(name: string, schema: JsonSchema): string[] {
  const { description, properties } = schema
  const required = new Set(schema.required)
  return [
    `### ${name}`,
    ...(description === undefined ? [] : ['', description]),
    ...(properties === undefined
      ? ['', `${typeOf({ ...schema, description: '' })}.`]
      : [
          '',
          '| field | type | |',
          '| --- | --- | --- |',
          ...Object.entries(properties).map(
            ([field, property]) =>
              `| \`${field}\`${required.has(field) ? '' : ' (optional)'} | ${typeOf(property)} | ${cell(property.description ?? '')} |`,
          ),
        ]),
  ]
}

function contentType(content: Content): string {
  return Object.entries(content)
    .map(([mediaType, { schema }]) =>
      mediaType === 'application/json' ? typeOf(schema) : `${typeOf(schema)} as \`${mediaType}\``,
    )
    .join(', ')
}

function typeOf(schema: JsonSchema): string {
  const { $ref, anyOf, oneOf, type, format, items, properties } = schema
  if ($ref !== undefined) {
    const name = $ref.replace(/.*\//, '')
    return `[${name}](#${name.toLowerCase()})`
  }
  if (schema.const !== undefined) return `\`${JSON.stringify(schema.const)}\``
  if (schema.enum !== undefined) return schema.enum.map((value) => `\`${String(value)}\``).join(', ')
  const choices = anyOf ?? oneOf
  if (choices !== undefined) return choices.map(typeOf).join(' or ')
  if (items !== undefined) return `list of ${typeOf(items)}`
  if (properties !== undefined) return `object of ${Object.keys(properties).join(', ')}`
  if (type === undefined) return 'any JSON'
  return format ?? [type].flat().join(' or ')
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}
