/** Looks at everything that a board shows, as the library, the dashboard, the exporter and the command line do: none of them may fail. */

import { BOARD_GAUGES } from '../../src/cli/commands/exporter/board-gauges.ts'
import { GaugeReader } from '../../src/cli/commands/exporter/gauge-reader.ts'
import { run } from '../../src/cli/run.ts'
import { UnsupportedCapability } from '../../src/core/errors.ts'
import { daemonLog } from '../../src/core/log.ts'
import type { JobBoard, Persistence } from '../../src/index.ts'
import { PrometheusSink } from '../../src/telemetry/internal.ts'
import { ROUTES } from '../../src/ui/api/routes.ts'
import { dashboard } from '../../src/ui/index.ts'

const ORIGIN = 'http://localhost:7411'
/** The answer of a dashboard to what a board does not have. */
const NOT_SUPPORTED = 501
/** The routes that need more than a board: a stream, and what is asked for one job. */
const OTHER_ROUTES = /events|picture|suggest|:uuid/
const MAX_JOBS = 3

/** Every list of the library. */
export async function lookByLibrary(board: JobBoard): Promise<void> {
  const lists: readonly (() => Promise<unknown>)[] = [
    () => board.schedules.list(),
    () => board.limits.list({ waiting: true }),
    () => board.flows(),
    () => board.batches(),
    () => board.history({ limit: 1_000 }),
    () => board.entities('conductor'),
  ]
  for (const list of lists)
    await list().catch((error: unknown) => {
      if (!(error instanceof UnsupportedCapability)) throw error
    })
}

/** Every page of the API of the dashboard, and some of its jobs. */
export async function lookByDashboard(board: JobBoard, persistence: Persistence): Promise<void> {
  const faults: string[] = []
  const log = daemonLog({ level: 'error', stream: { write: (line) => void faults.push(line) } })
  const opened = dashboard({ board, persistence, log })
  try {
    const paths = ROUTES.filter(({ method, path }) => method === 'GET' && !OTHER_ROUTES.test(path)).map(
      ({ path }) => path,
    )
    // Without `authorize`, the dashboard answers programs of this machine only.
    const get = (path: string) => opened.fetch(new Request(`${ORIGIN}${path}`), { address: '127.0.0.1' })
    const ask = async (path: string) => {
      const response = await get(`/api/v1${path}`)
      const body = await response.text()
      if (response.status >= 500 && response.status !== NOT_SUPPORTED)
        throw new Error(`GET ${path}: ${response.status} ${faults.join(' ')}`)
      return body
    }
    const page = await get('/')
    if (page.status !== 200) throw new Error(`the page is answered with ${page.status}`)
    for (const path of paths) await ask(path.replace(':board', 'main'))
    for (const list of ['jobs', 'trash', 'history']) {
      const { items = [] }: { items?: { uuid?: unknown }[] } = Object(JSON.parse(await ask(`/boards/main/${list}`)))
      for (const { uuid } of items.slice(0, MAX_JOBS)) {
        await ask(`/boards/main/jobs/${uuid}`)
        await ask(`/boards/main/jobs/${uuid}/values`)
        await ask(`/boards/main/jobs/${uuid}/picture`)
      }
    }
  } finally {
    await opened.close()
  }
}

/** The gauges of the exporter. */
export async function lookByExporter(board: JobBoard): Promise<void> {
  using reader = new GaugeReader(board, { label: 'fuzz' })
  const sink = new PrometheusSink(BOARD_GAUGES)
  await reader.record(sink)
  if (!sink.text().includes('jobboard_board_up{board="fuzz"} 1'))
    throw new Error('the exporter says that the board is away')
}

const COMMANDS = [
  ...['jobs', 'history', 'trash list', 'conductors', 'info', 'flows', 'schedule list', 'limits list', 'batch list'],
  ...[
    'jobs --json',
    'history --json',
    'trash list --json',
    'schedule list --json',
    'limits list --json',
    'batch list --json',
  ],
]
/** Errors of the language: what the code did not expect. */
const FAULT = /(Type|Range|Reference|Syntax|URI)Error/
const UNSUPPORTED = /does not support|keeps no|has no/

/** A command that lists things, in this process. */
export async function lookByCommand(uri: string, index: number): Promise<void> {
  const command = COMMANDS[index % COMMANDS.length] ?? 'jobs'
  const written: string[] = []
  const output = {
    ...{ columns: 100, failed: new AbortController().signal },
    write: (text: string) => void written.push(text),
    flush: async () => undefined,
  }
  const nothing = { [Symbol.dispose]: () => undefined }
  const exitCode = await run([...command.split(' '), '--board', uri], {
    readStdin: async () => '',
    openStdin: async function* () {},
    ...{ stdout: output, stderr: output, env: {}, cwd: '/' },
    listenForInterruption: () => ({ signal: new AbortController().signal, ...nothing }),
    captureFaults: () => nothing,
  })
  const said = written.join('')
  // These name what cannot be read, and list the others.
  const mayFail = /^(jobs|trash)/.test(command) && exitCode === 1 && !FAULT.test(said)
  if (exitCode !== 0 && !mayFail && !UNSUPPORTED.test(said))
    throw new Error(`jobboard ${command} exits with ${exitCode}: ${said.slice(-500)}`)
}
