/** The command `jobboard post`: posts one job. */
import type { Command } from 'commander'
import type { Job, JobBoard, PostedJob, PostOptions } from '../../../board/index.ts'
import { InvalidArgument } from '../../../core/errors.ts'
import type { AnyFlow } from '../../../flow/index.ts'
import { postedView } from '../../../views/index.ts'
import { type CliContext, DONE, type ExitCode, FAILED, type RunAction } from '../../context.ts'
import { KEY_ON_CHOICES } from '../../input/choices.ts'
import { count, type FlagTable, type OptionsOf, oneOf, shared, texts, withFlags } from '../../input/flags.ts'
import { chooseFlow, flowNamed, loadFlows, withPostDefaults } from '../../input/flows-module.ts'
import {
  checkStore,
  definedOnly,
  jsonObject,
  parseDuration,
  readStoreText,
  redactedKeys,
  toResourceOptions,
  toUnlimitedWait,
} from '../../input/shared-options.ts'
import { openNamedBoard } from '../../opening.ts'
import { follow, logbooksToFollow } from '../../output/follow.ts'
import { printJson, printLines } from '../../output/output.ts'
import { escapeUnprintable } from '../../output/render/text.ts'
import { postFrom } from './from.ts'

const FLAGS = {
  ...shared('--flows <module>', '--store <json>'),
  '--from <file>':
    'post a job for each line of a file, or of standard input (-): a JSON object with flow, store, name, key (or { name, for, on }), uuid, priority, queue, delay, ' +
    'expiresAfter, after, batch, deadline, resultTtl, maxAttempts, resources, limits, details; options of the command line are for lines that lack them',
  '--from-line <n>': ['with --from, the first line that is posted (default: 1)', count()],
  '--rejects <file>':
    'with --from, the file to which the lines that were not posted are written; with --from-line they are added to it',
  '--resume': 'with --from, leave out lines whose uuid is on the board',
  ...shared('--name <name>', '--priority <priority>', '--queue <name>', '--size <size>', '--max-attempts <n>'),
  '--exclusive <resource>': ['resource that it owns exclusively while it runs; may be repeated', texts],
  '--shared <resource>': ['resource that it owns together with others while it runs; may be repeated', texts],
  '--limit <key>': ['key of a limit that it keeps, besides flow/NAME; may be repeated', texts],
  '--key <key>': 'at most one job with this key is on the board: if there is one already, its uuid is printed',
  '--key-for <duration>': 'with --key, how long the key stays taken, also after its job (default: as long as its job)',
  '--key-on <action>': [
    'with --key, what to do if the key is taken: ignore, or replace a job that nobody has claimed yet (default: ignore)',
    oneOf(KEY_ON_CHOICES),
  ],
  '--after <uuid>': ['job after which it is run, once that job is done; may be repeated', texts],
  '--after-settled <uuid>': ['the same, also if that job goes to the trash; may be repeated', texts],
  '--batch <uuid>': 'batch that counts it to its end: see batch create',
  '--delay <duration>': 'time until it can be claimed (default: none)',
  ...shared('--expires-after <duration>', '--deadline <duration>'),
  '--result-ttl <duration>': 'how long after its end its results can be read (default: as long as they are kept)',
  '--uuid <uuid>': 'uuid of the job, to post again after an unknown outcome (default: a new one)',
  '--wait': 'wait until it is done, and print its progress if logbooks are named; exit code as of wait',
  '--within <duration>': 'with --wait, how long (default: for ever)',
  '--json': 'print the job as a JSON object; with --wait, once it is done',
} satisfies FlagTable

type PostCommandOptions = OptionsOf<typeof FLAGS>

export function definePost(program: Command, run: RunAction): void {
  withFlags(program.command('post'), FLAGS)
    .summary('post a job')
    .description(
      'Posts a job that runs FLOW, and prints its uuid. With --flows the store is checked here against the inputs that the ' +
        'flow requires; without it, the conductor that runs the job checks it.',
    )
    .argument('[flow]', 'name of the flow; with --from, of lines that name none')
    .addHelpText(
      'after',
      `\nExamples:\n  $ jobboard post hello --flows ./flows.js --store '{"name":"Ada"}' --priority HIGH\n  $ jobboard post hello --store - --wait --within 10m < store.json\n  $ jobboard post tidy --exclusive disk --key tidy --delay 1h\n  $ jobboard post sync --key fedora --key-on replace --key-for 10m`,
    )
    .action(run(post))
}

async function post(options: PostCommandOptions, context: CliContext, command: Command): Promise<ExitCode> {
  if (options.from !== undefined) return postLines(options, { from: options.from, context, command })
  assertOneJob(options)
  const [name] = command.args
  if (name === undefined) throw new InvalidArgument('post: name the flow, or a file with --from')
  const store = jsonObject(await readStoreText(options, context), '--store', { fromStdin: options.store === '-' })
  await checkUuid(options.uuid)
  const flow = options.flows === undefined ? name : await flowNamed(name, options.flows, context)
  if (typeof flow !== 'string') await checkStore(flow, store)
  const limits = options.within === undefined ? {} : { timeout: parseDuration(options.within, '--within') }
  // A flow whose code is known has the defaults of the config file already.
  const defaults = typeof flow === 'string' ? context.configFile?.flowDefaults(flow) : undefined
  const posting = withPostDefaults(postOptions(options), defaults)
  await using opened = await openNamedBoard(options, context)
  await using logbooks = options.wait ? await logbooksToFollow(options, context) : undefined
  const job = await postToBoard(opened.board, { flow, store, options: posting })
  if (!job.created) context.stderr.write(`${describeTakenKey(job)}: ${escapeUnprintable(String(job))}\n`)
  if (!options.json) await printLines(context, [job.uuid])
  else if (!options.wait) await printJson(context, [postedView(job)])
  await warnOfUnservedJob(job, opened.board, context)
  if (!options.wait) return DONE
  const how = { logbooks, ...limits, ...toUnlimitedWait(command), redact: redactedKeys(options, context) }
  const state = await follow(job, how, context)
  if (options.json) await printJson(context, [{ ...postedView(job), state }])
  else await printLines(context, [state])
  return state === 'COMPLETE' ? DONE : FAILED
}

/** The options that one job has, with their names. */
const ONE_JOB_FLAGS = [
  ['store', 'store'],
  ['key', 'key'],
  ['keyFor', 'key-for'],
  ['keyOn', 'key-on'],
  ['uuid', 'uuid'],
  ['wait', 'wait'],
  ['within', 'within'],
] as const

async function postLines(
  options: PostCommandOptions,
  { from, context, command }: { readonly from: string; readonly context: CliContext; readonly command: Command },
): Promise<ExitCode> {
  for (const [flag, name] of ONE_JOB_FLAGS)
    if (options[flag] !== undefined)
      throw new InvalidArgument(`--${name} is for one job: with --from, each line has its own`)
  const [flow] = command.args
  const { flows: module } = options
  const known = module === undefined ? undefined : await loadFlows(module, context)
  await using opened = await openNamedBoard(options, context)
  // Otherwise each line would be refused.
  if (options.batch !== undefined) await opened.board.findBatch(options.batch)
  const { fromLine = 1, rejects, resume = false, json = false } = options
  return await postFrom(
    opened.board,
    {
      ...{ from, fromLine, resume, json, flow, defaults: postOptions(options) },
      ...definedOnly({ rejects }),
      withDefaults: (item, name) => withPostDefaults(item, context.configFile?.flowDefaults(name)),
      toFlow: (name) => (known && module !== undefined ? chooseFlow(name, known, module) : name),
    },
    context,
  )
}

/** @throws InvalidArgument for options that only many jobs have */
function assertOneJob(options: PostCommandOptions): void {
  for (const [flag, value] of Object.entries({
    '--from-line': options.fromLine,
    '--rejects': options.rejects,
    '--resume': options.resume,
  }))
    if (value !== undefined) throw new InvalidArgument(`${flag} needs --from FILE`)
}

/** Returns what a post has done that created nothing. */
function describeTakenKey({ because, replaced }: PostedJob): string {
  if (replaced) return 'the posting of the job that waits with this key was replaced'
  if (because === 'window') return 'a job with this key was posted before, and the window of the key is not over'
  return because === 'running'
    ? 'a job with this key is on the board already, and was started'
    : 'a job with this key is on the board already'
}

/** Warns of a flow that no conductor knows, and of a queue that none serves: the job of a misspelt name is posted like any other, and is never run. */
async function warnOfUnservedJob(job: Job, board: JobBoard, { stderr }: CliContext): Promise<void> {
  const held = await board.waitingFor(job).catch(() => undefined)
  if (held?.kind === 'flow' || held?.kind === 'queue')
    stderr.write(`${escapeUnprintable(`${held.text}; it waits for one that does`)}\n`)
}

function postToBoard(
  board: JobBoard,
  { flow, store, options }: { flow: AnyFlow | string; store: object; options: PostOptions },
): ReturnType<JobBoard['post']> {
  return typeof flow === 'string' ? board.post(flow, store, options) : board.post(flow, store, options)
}

function postOptions(options: PostCommandOptions): PostOptions {
  const { name, priority, queue, size, maxAttempts, uuid, batch, delay, expiresAfter, deadline, resultTtl } = options
  return {
    ...toResourceOptions(options),
    ...definedOnly({ name, priority, queue, size, maxAttempts, uuid, batch, limits: options.limit }),
    ...toKey(options),
    ...toDependencies(options),
    ...(delay === undefined ? {} : { delay: parseDuration(delay, '--delay') }),
    ...(expiresAfter === undefined ? {} : { expiresAfter: parseDuration(expiresAfter, '--expires-after') }),
    ...(deadline === undefined ? {} : { deadline: parseDuration(deadline, '--deadline') }),
    ...(resultTtl === undefined ? {} : { resultTtl: parseDuration(resultTtl, '--result-ttl') }),
  }
}

/** Returns the key of the job. @throws InvalidArgument for options of a key without one */
function toKey({ key, keyFor, keyOn }: PostCommandOptions): Pick<PostOptions, 'key'> {
  if (key !== undefined) {
    const window = keyFor === undefined ? {} : { for: parseDuration(keyFor, '--key-for') }
    return { key: { name: key, ...window, ...definedOnly({ on: keyOn }) } }
  }
  for (const [flag, value] of [
    ['--key-for', keyFor],
    ['--key-on', keyOn],
  ] as const)
    if (value !== undefined) throw new InvalidArgument(`${flag} needs --key`)
  return {}
}

/** Returns the jobs after which the job is run. */
function toDependencies({ after = [], afterSettled = [] }: PostCommandOptions): Pick<PostOptions, 'after'> {
  const dependencies = [...after, ...afterSettled.map((uuid) => ({ uuid, on: 'settled' as const }))]
  return dependencies.length === 0 ? {} : { after: dependencies }
}

/** Checks `--uuid` before the board is opened. @throws InvalidArgument */
async function checkUuid(uuid: string | undefined): Promise<void> {
  const { validate } = await import('uuid')
  if (uuid !== undefined && !validate(uuid)) throw new InvalidArgument(`--uuid must be a UUID, got '${uuid}'`)
}
