/** The command `jobboard ui`: serves the dashboard. */
import type { Command } from 'commander'
import { redactUri } from '../../../core/uri.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../../context.ts'
import { type BoardFlags, toBoards } from '../../input/board-flags.ts'
import { AUTH_CHOICES, LEVEL_CHOICES, LOG_LEVEL_CHOICES, MAX_PORT } from '../../input/choices.ts'
import {
  choiceParser,
  collectText,
  countParser,
  definedOnly,
  redactedKeys,
  type SharedOptions,
} from '../../input/shared-options.ts'
import { contextOf, openLogbooks, openNamedBoard } from '../../opening.ts'
import { printJson, printLines } from '../../output/output.ts'
import type { AccessFlags } from '../../ui/access.ts'

export interface UiCommandOptions extends SharedOptions, BoardFlags, AccessFlags {
  readonly port?: number
  readonly readOnly?: boolean
  readonly allowedHost?: readonly string[]
  readonly base?: string
  readonly logLevel?: (typeof LOG_LEVEL_CHOICES)[number]
  readonly json?: boolean
}

const DEFAULT_PORT = 7_411

export function defineUi(program: Command, run: RunAction): void {
  const command = program
    .command('ui')
    .summary('serve the dashboard')
    .description(
      'Serves the dashboard of the board until Ctrl-C: jobs, why they wait, their flows and logbooks, the trash by reasons, ' +
        'limits, schedules, conductors. Prints a link that works once and signs the browser in. Repeat --board for several ' +
        'boards. Without --persistence, jobs are shown without their tasks.',
    )
    .option(
      '--port <port>',
      `port to listen on, 0 for a free one (default: ${DEFAULT_PORT})`,
      countParser('--port', { least: 0, most: MAX_PORT }),
    )
    .option(
      '--host <address>',
      'address to listen on; another than this machine needs a way to sign in (default: 127.0.0.1)',
    )
    .option('--read-only', 'refuse all changes, for all users')
    .option(
      '--auth <mode>',
      'link: a link that works once (default on this machine); none: everybody on this machine may do everything',
      choiceParser('--auth', AUTH_CHOICES),
    )
    .option(
      '--token <token>',
      'sign in with this token, or as a program with Authorization: Bearer (or JOBBOARD_UI_TOKEN)',
    )
    .option('--basic <file>', 'sign in with a name and a password of this file; jobboard ui password makes its lines')
    .option('--trust-header <name>', 'name of the person in a header that a proxy sets, as in X-Forwarded-User')
    .option('--trusted-proxy <cidr>', 'address of that proxy, as in 10.0.0.0/8; may be repeated', collectText)
    .option(
      '--level <level>',
      `level of those who sign in otherwise than with --basic: ${LEVEL_CHOICES.join(', ')} (default: admin)`,
      choiceParser('--level', LEVEL_CHOICES),
    )
    .option('--hide-values', 'never show stores and results')
    .option(
      '--allowed-host <name>',
      'host name under which it answers, beside those of this machine; may be repeated',
      collectText,
    )
    .option(
      '--base <path>',
      'path before that of the dashboard, as in /ops/jobs (default: found out from each request)',
    )
    .option(
      '--log-level <level>',
      `one of ${LOG_LEVEL_CHOICES.join(', ')} (default: info)`,
      choiceParser('--log-level', LOG_LEVEL_CHOICES),
    )
    .option('--json', 'print the address as a JSON object')
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard ui\n  $ jobboard ui --host 0.0.0.0 --allowed-host jobs.example.com --basic ./people',
    )
    .action(run(ui))
  command
    .command('password')
    .summary('make a line of the file of --basic')
    .description('Reads a password from standard input and prints the line of a person for the file of --basic.')
    .argument('<name>', 'name of the person')
    .option(
      '--level <level>',
      `what the person may do: ${LEVEL_CHOICES.join(', ')} (default: read)`,
      choiceParser('--level', LEVEL_CHOICES),
    )
    .option('--values', 'the person may see stores and results')
    .addHelpText(
      'after',
      '\nExample:\n  $ printf %s "$PASSWORD" | jobboard ui password ada --level admin --values >> people',
    )
    .action(run(password))
}

async function ui(options: UiCommandOptions, context: CliContext): Promise<ExitCode> {
  using interruption = context.listenForInterruption()
  const chosen = toBoards(options, context)
  await using opened = new Opened()
  const { serveBoards, toBoardNames } = await loadServing()
  const names = toBoardNames(chosen.map(({ uri }) => uri))
  const log = await openLog(options, context)
  // The log is for changes and faults; that a board is connected is on the page.
  const quiet = log.child({}, { level: log.isLevelEnabled('debug') ? log.level : 'warn' })
  const logbooks = opened.add(await openLogbooks(options, context))
  const boards = []
  for (const [index, { uri, persistence, auth }] of chosen.entries()) {
    const own = contextOf({ auth, persistence }, context)
    const { board } = opened.add(await openNamedBoard({ ...options, board: uri }, own, { create: false, log: quiet }))
    const books =
      persistence === undefined ? logbooks : opened.add(await openLogbooks({ ...options, persistence }, own))
    boards.push({
      name: names[index] ?? uri,
      uri,
      auth,
      logbooks: persistence,
      board,
      ...definedOnly({ persistence: books?.persistence }),
    })
  }
  const { toAccess } = await loadAccess()
  const access = await toAccess(options, context)
  const served = opened.add(
    await serveBoards(boards, {
      ...{ options, context, access, log },
      redact: redactedKeys(options, context),
      port: options.port ?? DEFAULT_PORT,
    }),
  )
  const from = chosen.map(({ uri }) => redactUri(uri)).join(', ')
  if (options.json) await printJson(context, [{ url: served.url, boards: names }])
  else
    await printLines(context, [
      `dashboard of ${from} at ${served.url}`,
      ...(access.note === undefined ? [] : [access.note]),
      'Ctrl-C stops it',
    ])
  await untilAborted(interruption.signal)
  return DONE
}

async function password(
  { level = 'read', values = false }: { readonly level?: (typeof LEVEL_CHOICES)[number]; readonly values?: boolean },
  context: CliContext,
  { args: [name = ''] }: Command,
): Promise<ExitCode> {
  const { passwordLine } = await loadDashboard()
  const secret = (await context.readStdin()).replace(/\r?\n$/, '')
  await printLines(context, [await passwordLine(name, secret, { level, values })])
  return DONE
}

/** What was opened, closed in reverse order. Node.js 20 has no AsyncDisposableStack. */
class Opened implements AsyncDisposable {
  readonly #opened: AsyncDisposable[] = []

  add<T extends AsyncDisposable | undefined>(one: T): T {
    if (one) this.#opened.push(one)
    return one
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const one of this.#opened.reverse()) await one[Symbol.asyncDispose]()
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}

async function openLog(options: UiCommandOptions, context: CliContext) {
  const [{ openLogStream }, { daemonLog }] = await Promise.all([
    import('../../output/log-format.ts'),
    import('../../../core/log.ts'),
  ])
  const stream = await openLogStream('auto', context)
  return daemonLog(definedOnly({ level: options.logLevel, stream }))
}

/** Import in separate functions: TypeScript 6.0 does not rewrite the `.ts` of an import() beside a `using`. */
const loadAccess = () => import('../../ui/access.ts')
const loadServing = () => import('../../ui/serve-boards.ts')
const loadDashboard = () => import('../../../ui/index.ts')
