import { explainRun, type ModuleReasons } from '@carillon/api'
import { describeCadence, type Run, type Schedule, type Scheduler } from '@carillon/core'
import type { FastifyInstance } from 'fastify'

import { SESSION_COOKIE } from '../auth/authenticate.ts'
import { INSTALLATION } from '../auth/identity.ts'
import { html, sendPage, type Html } from './html.ts'
import type { SignIn } from './sign-in.ts'

const SCHEDULES_SHOWN = 50

interface HomePageDeps {
  readonly scheduler: Scheduler
  readonly signIn: SignIn
  /** The URL of this server, once it listens. */
  readonly url: () => string
  /** The reasons of modules, each with its sentence. @default none */
  readonly reasons?: ModuleReasons | undefined
}

interface ShownSchedule {
  readonly schedule: Schedule
  readonly latestRun: (Run & { readonly explanation: string }) | undefined
}

/** GET /: the schedules of the installation's own project, for a signed-in browser. The page has no script. */
export function serveHomePage(app: FastifyInstance, { scheduler, signIn, url, reasons }: HomePageDeps): void {
  app.get('/', async (request, reply) => {
    const cookie = request.cookies[SESSION_COOKIE]
    if (cookie === undefined || !signIn.accepts(cookie)) return sendPage(reply, 200, signedOutPage())
    return sendPage(reply, 200, homePage(await listSchedules(scheduler, reasons), url()))
  })
}

async function listSchedules(scheduler: Scheduler, reasons?: ModuleReasons): Promise<ShownSchedule[]> {
  const { caller } = INSTALLATION
  const schedules = await scheduler.list(caller, { limit: SCHEDULES_SHOWN })
  return Promise.all(
    schedules.map(async (schedule) => {
      const [latestRun] = await scheduler.listRuns(caller, schedule.id, { limit: 1 })
      return { schedule, latestRun: latestRun && { ...latestRun, explanation: explainRun(latestRun, reasons) } }
    }),
  )
}

function signedOutPage(): { title: string; body: Html } {
  return {
    title: 'Carillon',
    body: html`<header><h1>Carillon</h1></header>
      <p>
        You are not signed in. When Carillon starts it prints a link that signs a browser in, once: restart it and
        follow the new one.
      </p>
      <p>The command line needs no sign-in. Where Carillon was started:</p>
      <pre>npx carillon schedules list</pre>
      <footer><a href="/docs">API reference</a></footer>`,
  }
}

function homePage(shown: readonly ShownSchedule[], url: string): { title: string; body: Html } {
  return {
    title: 'Schedules · Carillon',
    body: html`<header>
        <h1>Carillon</h1>
        <nav>
          <a href="/docs">API reference</a>
          <form method="post" action="/sign-out"><button>Sign out</button></form>
        </nav>
      </header>
      ${shown.length === 0 ? emptyState(url) : scheduleTable(shown)}
      <footer>
        <span>Change something: <code>npx carillon --help</code></span>
      </footer>`,
  }
}

function emptyState(url: string): Html {
  return html`<p>There is no schedule yet. This one runs once, five seconds after you make it:</p>
    <pre>npx carillon schedules create &quot;First light&quot; --in 5s --url ${url}/healthz --method GET</pre>`
}

function scheduleTable(shown: readonly ShownSchedule[]): Html {
  const more =
    shown.length < SCHEDULES_SHOWN
      ? html``
      : html`<p>These are the newest ${SCHEDULES_SHOWN}; see all with <code>npx carillon schedules list</code>.</p>`
  return html`<div class="wide">
      <table>
        <thead>
          <tr>
            <th>Schedule</th>
            <th>State</th>
            <th>Next slot</th>
            <th>Latest run</th>
          </tr>
        </thead>
        <tbody>
          ${shown.map(scheduleRow)}
        </tbody>
      </table>
    </div>
    ${more}`
}

function scheduleRow({ schedule, latestRun }: ShownSchedule): Html {
  const { name, state, pausedReason, cadence, nextSlotAt } = schedule
  return html`<tr>
    <td>${name}<small>${describeCadence(cadence)}</small></td>
    <td><b class="${state}">${state}</b>${pausedReason === null ? html`` : html`<small>${pausedReason}</small>`}</td>
    <td>${nextSlotAt === null ? html`none` : instant(nextSlotAt)}</td>
    <td>${latestRun === undefined ? html`none yet` : runCell(latestRun)}</td>
  </tr> `
}

function runCell(run: NonNullable<ShownSchedule['latestRun']>): Html {
  return html`<b class="${run.state}">${run.state}</b> ${instant(run.scheduledFor)}<small>${run.explanation}</small>`
}

/** In UTC, because local time would need a script. */
function instant(epochMs: number): Html {
  const text = new Date(epochMs).toISOString()
  return html`<time datetime="${text}">${text.slice(0, 19).replace('T', ' ')} UTC</time>`
}
