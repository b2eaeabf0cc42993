/** The command `jobboard ui`: serves the dashboard. */
import type { Command } from 'commander'
import { redactUri } from '../../../core/uri.ts'
import { type CliContext, DONE, type ExitCode, type RunAction } from '../../context.ts'
import { type BoardFlags, toBoards } from '../../input/board-flags.ts'
import { AUTH_CHOICES, LEVEL_CHOICES, MAX_PORT } from '../../input/choices.ts'
import { count, type FlagTable, type OptionsOf, oneOf, shared, texts, withFlags } from '../../input/flags.ts'
import { definedOnly, redactedKeys } from '../../input/shared-options.ts'
import { contextOf, openLogbooks, openNamedBoard } from '../../opening.ts'
import { printJson, printLines } from '../../output/output.ts'

const DEFAULT_PORT = 7_411

const UI_FLAGS = {
  '--port <n>': [`port to listen on; 0 for a free one (default: ${DEFAULT_PORT})`, count({ least: 0, most: MAX_PORT })],
  '--host <address>': 'address to listen on; another than this machine needs a way to sign in (default: 127.0.0.1)',
  '--read-only': 'refuse all changes, for all users',
  '--auth <mode>': [
    'link: a link that works once (default on this machine); none: everybody on this machine may do everything',
    oneOf(AUTH_CHOICES),
  ],
  '--token <token>': 'sign in with this token, or as a program with Authorization: Bearer (or JOBBOARD_UI_TOKEN)',
  '--basic <file>': 'sign in with a name and a password of this file; jobboard ui password makes its lines',
  '--trust-header <name>': 'name of the person in a header that a proxy sets, as in X-Forwarded-User',
  '--trusted-proxy <cidr>': ['address of that proxy, as in 10.0.0.0/8; may be repeated', texts],
  '--level <level>': [
    `level of those who sign in otherwise than with --basic: ${LEVEL_CHOICES.join(', ')} (default: admin)`,
    oneOf(LEVEL_CHOICES),
  ],
  '--hide-values': 'never show stores and results',
  '--allowed-host <name>': ['host name under which it answers, beside those of this machine; may be repeated', texts],
  '--base <path>': 'path before that of the dashboard, as in /ops/jobs (default: found out from each request)',
  ...shared('--log-level <level>'),
  '--json': 'print the address as a JSON object',
} satisfies FlagTable

type UiCommandOptions = BoardFlags & OptionsOf<typeof UI_FLAGS>

const PASSWORD_FLAGS = {
  '--level <level>': [`what the person may do: ${LEVEL_CHOICES.join(', ')} (default: read)`, oneOf(LEVEL_CHOICES)],
  '--values': 'the person may see stores and results',
} satisfies FlagTable

export function defineUi(program: Command, run: RunAction): void {
  const command = withFlags(program.command('ui'), UI_FLAGS)
    .summary('serve the dashboard')
    .description(
      'Serves the dashboard of the board until Ctrl-C: jobs, why they wait, their flows and logbooks, the trash by reasons, ' +
        'limits, schedules, conductors. Prints a link that works once and signs the browser in. Repeat --board for several ' +
        'boards. Without --persistence, jobs are shown without their tasks.',
    )
    .addHelpText(
      'after',
      '\nExamples:\n  $ jobboard ui\n  $ jobboard ui --host 0.0.0.0 --allowed-host jobs.example.com --basic ./people',
    )
    .action(run(ui))
  withFlags(command.command('password'), PASSWORD_FLAGS)
    .summary('make a line of the file of --basic')
    .description('Reads a password from standard input and prints the line of a person for the file of --basic.')
    .argument('<name>', 'name of the person')
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
