import { describe, expect, test } from 'vitest'

import { loadModules } from '../../src/modules/registry.ts'
import type { ModuleNeeds } from '../../src/modules/selection.ts'
import type { AnyManifest, ModuleParts, PortToken } from '../../src/ports/module.ts'
import { manifestOf, NO_DEPS, targetOf, type Create } from './made-up-module.ts'

interface Ledger {
  readonly balance: () => number
}

const LEDGER: PortToken<Ledger> = { name: 'ledger' }
const SERVER: ModuleNeeds = { kinds: 'all', operations: true }

function load(manifests: readonly AnyManifest[], needs: ModuleNeeds = SERVER) {
  return loadModules({ manifests, needs, deps: NO_DEPS })
}

/** Modules that note when they are loaded, created and closed. */
function notingModules() {
  const notes: string[] = []
  const noting = (name: string, changes: Partial<AnyManifest> = {}, create?: Create): AnyManifest => {
    const own: Create = async (deps) => {
      notes.push(`create ${name}`)
      const parts = (await create?.(deps)) ?? {}
      const targets = (changes.kinds ?? [`${name}_call`]).map(targetOf)
      return { targets, close: () => Promise.resolve(void notes.push(`close ${name}`)), ...parts }
    }
    return manifestOf(name, { load: () => (notes.push(`load ${name}`), Promise.resolve({ create: own })), ...changes })
  }
  return { notes, noting }
}

describe('the modules of a process', () => {
  test('are those of the kinds that a worker serves, and no others are loaded', async () => {
    const { notes, noting } = notingModules()

    const { targets } = await load([noting('billing'), noting('graphs'), noting('agents')], {
      kinds: ['graphs_call'],
      operations: false,
    })

    expect(targets.map(({ kind }) => kind)).toEqual(['graphs_call'])
    expect(notes).toEqual(['load graphs', 'create graphs'])
  })

  test('are also those whose ports they use, which are created first, and closed last', async () => {
    const { notes, noting } = notingModules()
    const graphs = noting('graphs', { uses: [LEDGER] }, ({ use }) => {
      notes.push(`balance ${use(LEDGER).balance()}`)
      return {}
    })
    const billing = noting('billing', { provides: [LEDGER] }, () => ({ ports: { ledger: { balance: () => 7 } } }))

    const loaded = await load([graphs, billing, noting('agents')], { kinds: ['graphs_call'], operations: false })
    await loaded.close()
    await loaded.close()

    const order = [
      'load billing',
      'create billing',
      'load graphs',
      'create graphs',
      'balance 7',
      'close graphs',
      'close billing',
    ]
    expect(notes).toEqual(order)
    // The worker does not serve the kind of a module that is there for its port.
    expect(loaded.targets.map(({ kind }) => kind)).toEqual(['graphs_call'])
  })

  test('are for a server those with kinds or operations', async () => {
    const { notes, noting } = notingModules()
    const operation = { createTicket: { method: 'post' } } as never
    const tickets = noting('tickets', { kinds: [], operations: operation }, () => ({
      handlers: { createTicket: () => Promise.resolve({ body: {} }) },
    }))
    const idle = noting('idle', { kinds: [], provides: [LEDGER] })

    await load([tickets, idle, noting('billing')])

    expect(notes).toEqual(['load tickets', 'create tickets', 'load billing', 'create billing'])
  })

  test('are of the kinds that a worker serves only, if a module brings several', async () => {
    const { targets } = await load([manifestOf('graphs', { kinds: ['graph', 'agent'] })], {
      kinds: ['agent'],
      operations: false,
    })

    expect(targets.map(({ kind }) => kind)).toEqual(['agent'])
  })

  test('get the port of a module that may be there, and nothing if none provides it', async () => {
    const seen: unknown[] = []
    const graphs = manifestOf('graphs', { usesIfThere: [LEDGER] }, ({ useIfThere }) => {
      seen.push(useIfThere(LEDGER))
      return { targets: [targetOf('graphs_call')] }
    })
    const billing = manifestOf('billing', { provides: [LEDGER] }, () => ({
      targets: [targetOf('billing_call')],
      ports: { ledger: 'it' },
    }))

    await load([graphs])
    await load([graphs, billing])

    expect(seen).toEqual([undefined, 'it'])
  })

  test('get their settings, which are read before their code is loaded', async () => {
    const notes: unknown[] = []
    const graphs = manifestOf('graphs', {
      load: () => {
        notes.push('load')
        return Promise.resolve({
          create: ({ settings }: { settings: unknown }) => (
            notes.push(settings),
            { targets: [targetOf('graphs_call')] }
          ),
        })
      },
    })

    await loadModules({ manifests: [graphs], needs: SERVER, deps: NO_DEPS, settingsOf: ({ name }) => ({ of: name }) })
    const failing = loadModules({
      manifests: [graphs],
      needs: SERVER,
      deps: NO_DEPS,
      settingsOf: () => {
        throw new Error('CARILLON_GRAPHS_URL: expected a URL, got something else')
      },
    })

    await expect(failing).rejects.toThrow('CARILLON_GRAPHS_URL')
    expect(notes).toEqual(['load', { of: 'graphs' }])
  })
})

describe('a module is refused', () => {
  const failing = async (changes: Partial<AnyManifest>, parts: ModuleParts, needs?: ModuleNeeds): Promise<unknown> =>
    load([manifestOf('billing', changes, () => parts)], needs).catch((error: unknown) => error)
  const targets = [targetOf('billing_call')]

  test.each<[what: string, changes: Partial<AnyManifest>, parts: ModuleParts, message: string]>([
    ['it lacks a target', {}, {}, 'module billing: targets: expected those of the manifest (billing_call), got none'],
    ['it brings another target', {}, { targets: [...targets, targetOf('x')] }, 'got billing_call, x'],
    [
      'it lacks a handler',
      { operations: { pay: {} as never } },
      { targets },
      'module billing: handlers: expected those of the manifest (pay), got none',
    ],
    [
      'it lacks a port',
      { provides: [LEDGER] },
      { targets },
      'module billing: ports: expected those of the manifest (ledger), got none',
    ],
    [
      'a service has another name',
      {},
      {
        targets,
        services: [{ runsIn: 'one', name: 'sweep', slice: () => Promise.resolve({ cursor: null, restMs: 1 }) }],
      },
      'module billing: services: expected names that begin with "billing ", got "sweep"',
    ],
    [
      'a service has no kind whose workers could run it',
      { kinds: [], operations: { pay: {} as never } },
      {
        handlers: { pay: () => Promise.resolve({ body: null }) },
        services: [{ runsIn: 'one', name: 'billing sweep', slice: () => Promise.resolve({ cursor: null, restMs: 1 }) }],
      },
      'module billing: services: expected kinds or a port in the manifest, for which workers load the module and run its services, got none',
    ],
    [
      'two checks have one name',
      {},
      {
        targets,
        checks: ['a', 'a'].map((name) => ({ name, look: () => Promise.resolve({ findings: [], next: null }) })),
      },
      'module billing: checks: expected distinct names, got "a" twice',
    ],
  ])('if %s', async (_what, changes, parts, message) => {
    expect(await failing(changes, parts)).toMatchObject({
      code: 'module_refused',
      message: expect.stringContaining(message) as string,
    })
  })

  test('if its code throws, or is no code; the modules before it are closed', async () => {
    const { notes, noting } = notingModules()
    const broken = manifestOf('graphs', {}, () => Promise.reject(new Error('no graph store')))

    await expect(load([noting('billing'), broken])).rejects.toThrow('module graphs: no graph store')
    await expect(load([manifestOf('graphs', { load: () => Promise.resolve({} as never) })])).rejects.toThrow(
      'module graphs: expected load to return { create }',
    )

    expect(notes.at(-1)).toBe('close billing')
  })

  test('if it lacks something, and is closed', async () => {
    const { notes, noting } = notingModules()

    await expect(load([noting('billing', { provides: [LEDGER] })])).rejects.toThrow('ports')

    expect(notes.at(-1)).toBe('close billing')
  })

  test('if it asks for a port that its manifest does not name', async () => {
    const billing = manifestOf('billing', { provides: [LEDGER] }, () => ({
      targets: [targetOf('billing_call')],
      ports: { ledger: {} },
    }))
    const graphs = manifestOf('graphs', {}, ({ use }) => (use(LEDGER), {}))

    await expect(load([billing, graphs])).rejects.toThrow(
      'module graphs: uses: expected ledger among them, because the module asks for it, got none',
    )
  })

  test('if modules need each other', async () => {
    const [a, b, c] = ['a', 'b', 'c'].map((name) => ({ name }))
    const circle = [
      manifestOf('billing', { provides: [a as PortToken<unknown>], uses: [b as PortToken<unknown>] }),
      manifestOf('graphs', { provides: [b as PortToken<unknown>], uses: [c as PortToken<unknown>] }),
      manifestOf('agents', { provides: [c as PortToken<unknown>], usesIfThere: [a as PortToken<unknown>] }),
    ]

    await expect(load(circle)).rejects.toThrow(
      'module billing: uses: expected modules that do not need each other, got billing → graphs → agents → billing',
    )
  })

  test.each([[['graph']], [[]]])('no module brings the kinds %j that a worker is to serve', async (kinds) => {
    await expect(load([manifestOf('billing')], { kinds, operations: false })).rejects.toMatchObject({
      code: 'unknown_target_kind',
      message: expect.stringContaining(
        'expected kinds of target that this Carillon knows (billing_call), got',
      ) as string,
    })
  })
})
