import { expected, fieldProblems, foundText, RUN_REASONS } from '@carillon/api'
import { z } from 'zod'

import { CarillonError } from '../kernel/errors.ts'
import { MODULE_PORT, type AnyManifest, type PortToken } from '../ports/module.ts'

/**
 * First words that the name of a module cannot have, because objects of core's schema and variables of Carillon begin with them: a table
 * `schedule_notes` could be core's or that of a module `schedule`. Tests compare the list with both.
 */
export const RESERVED_WORDS: ReadonlySet<string> = new Set(
  `add admin allowed api assign attempt attempts audit audits cadence callback carillon check completion core count create data debug delete drop enable
  event execution feed finding home host idempotent is jwt key lane list live lock log max member members metrics min migration migrations
  modules module note openfga otel port postgres public rate read request retention role run runs schedule schedules schema secret secrets service slot
  tenant tenants timeout transcript transcripts update url worker workers`.split(/\s+/),
)

const NAME = /^[a-z][a-z0-9_]{0,30}$/
const NAME_SHAPE = 'a name of up to 31 lower-case letters, digits and underscores that begins with a letter'
const REASON = /^[a-z][a-z0-9_]{0,62}$/
const TOKEN = /^[a-z][a-z0-9_.-]{0,62}$/
const SENTENCE = expected('a sentence of one line without a full stop at its end')

const name = z.string(expected(NAME_SHAPE)).regex(NAME, expected(NAME_SHAPE))
const sentence = z.string(SENTENCE).regex(/^\S.*[^.\s]$/, SENTENCE)
const callable = z.custom<(...args: never) => unknown>((value) => typeof value === 'function', expected('a function'))
const tokens = z.array(
  z.object(
    { name: z.string(expected('the name of a port')).regex(TOKEN, expected('the name of a port')) },
    expected('a token'),
  ),
  expected('a list of tokens'),
)
const record = z.record(z.string(), z.unknown(), expected('an object'))

/** The fields of a manifest, as far as they can be checked without loading the module. A field too much may be a misspelt one. */
const MANIFEST = z.strictObject(
  {
    port: z.literal(MODULE_PORT),
    name: name.refine(
      (text) => !RESERVED_WORDS.has(text.split('_')[0] ?? ''),
      expected('a name that core does not use'),
    ),
    version: z.string(expected('a version')).min(1, expected('a version')),
    kinds: z.array(name, expected('a list of kinds')).optional(),
    migrations: z
      .custom<URL>(isFolder, expected('the URL of a folder, such as new URL("./migrations/", import.meta.url)'))
      .optional(),
    reasons: z
      .record(
        z
          .string()
          .regex(REASON)
          .refine((reason) => !RUN_REASONS.some((own) => own === reason)),
        sentence,
        {
          error: ({ code, input }) =>
            code === 'invalid_key' ? REASON_KEY : `expected reasons, got ${foundText(input)}`,
        },
      )
      .optional(),
    settings: z
      .custom((value) => value instanceof z.ZodObject || isZodObject(value), expected('an object schema of zod'))
      .optional(),
    operations: record.optional(),
    commands: callable.optional(),
    uses: tokens.optional(),
    usesIfThere: tokens.optional(),
    provides: tokens.optional(),
    load: callable,
  } satisfies Record<keyof AnyManifest, z.ZodType>,
  expected('the manifest of a module'),
)

const REASON_KEY = 'expected reasons of lower-case letters, digits and underscores that core does not have, got another'

/**
 * Checks the manifests of all modules of an installation, before any code of them is loaded.
 * @throws CarillonError `module_refused`, which names the module and the field at fault
 */
export function checkManifests(manifests: readonly AnyManifest[]): readonly AnyManifest[] {
  for (const manifest of manifests) checkManifest(manifest)
  requireDistinct(manifests, 'name', ({ name: own }) => [own])
  requireDistinct(manifests, 'kinds', ({ kinds }) => kinds)
  requireDistinct(manifests, 'reasons', ({ reasons }) => Object.keys(reasons ?? {}))
  requireDistinct(manifests, 'provides', ({ provides }) => provides?.map((token) => token.name))
  for (const manifest of manifests) {
    requireOwnPrefix(manifest, manifests)
    for (const token of manifest.uses ?? []) requireProvider(manifest, token, manifests)
  }
  return manifests
}

/** Checks one manifest by itself, whatever it is: a module of users may be plain JavaScript. */
function checkManifest(manifest: unknown): asserts manifest is AnyManifest {
  const port = isObject(manifest) ? manifest['port'] : undefined
  if (isObject(manifest) && port !== MODULE_PORT) {
    const found = foundText(port)
    throw refused(
      manifest['name'],
      'port',
      `expected ${MODULE_PORT}, got ${found}: install a version of the module for this Carillon`,
    )
  }
  const parsed = MANIFEST.safeParse(manifest)
  if (!parsed.success) {
    const [problem] = fieldProblems(parsed.error, (path) => path.join('.'))
    throw refused(
      isObject(manifest) ? manifest['name'] : undefined,
      problem?.field ?? '',
      problem?.message ?? 'is wrong',
    )
  }
  const { kinds = [], operations = {}, provides = [], commands } = parsed.data
  if (kinds.length + Object.keys(operations).length + provides.length > 0 || commands !== undefined) return
  throw refused(
    parsed.data.name,
    '',
    'expected kinds, operations, commands or a port that it provides, got none: no process would load it',
  )
}

function requireDistinct(
  manifests: readonly AnyManifest[],
  field: keyof AnyManifest,
  wordsOf: (manifest: AnyManifest) => readonly string[] | undefined,
): void {
  const owners = new Map<string, string>()
  for (const manifest of manifests) {
    for (const word of wordsOf(manifest) ?? []) {
      const owner = owners.get(word)
      if (owner !== undefined) {
        throw refused(manifest.name, field, `expected words that no other module has, got ${word} of ${owner}`)
      }
      owners.set(word, manifest.name)
    }
  }
}

/** The table `bill_ing_x` could belong to a module `bill` and to a module `bill_ing`. So could a variable. */
function requireOwnPrefix({ name: own }: AnyManifest, manifests: readonly AnyManifest[]): void {
  const other = manifests.find((manifest) => own.startsWith(`${manifest.name}_`))
  if (other !== undefined) {
    throw refused(own, 'name', `expected a name that does not begin with ${other.name}_, that of another module`)
  }
}

function requireProvider(
  { name: own }: AnyManifest,
  token: PortToken<unknown>,
  manifests: readonly AnyManifest[],
): void {
  if (manifests.some(({ provides }) => provides?.some((provided) => provided.name === token.name) === true)) return
  throw refused(own, 'uses', `expected a module that provides ${token.name}, got none: add one to CARILLON_MODULES`)
}

/** @param module the name of the module, as far as it has one */
export function refused(
  module: unknown,
  field: string,
  message: string,
  options: { cause?: unknown } = {},
): CarillonError {
  const of = typeof module === 'string' ? `module ${module}` : 'module'
  return new CarillonError('module_refused', `${of}: ${field === '' ? '' : `${field}: `}${message}`, options)
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
}

function isFolder(value: unknown): boolean {
  return value instanceof URL && value.protocol === 'file:'
}

/** A module may bring a copy of zod of its own, whose classes are not those of this one. */
function isZodObject(value: unknown): boolean {
  return isObject(value) && '_zod' in value && isObject(value['shape'])
}
