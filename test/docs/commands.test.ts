/**
 * Each command that stands on a page can be typed: the command line understands it, up to where it asks for its board.
 * What the commands then do is shown in `test/cli/`; those of the first pages are run in `start.test.ts`.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type CliContext, processContext } from '../../src/cli/context.ts'
import { describeProject, projectFiles } from '../../src/cli/init/project.ts'
import { run } from '../../src/cli/run.ts'
import { ensureBuilt, ROOT } from '../support/build.ts'
import { allPages, readPage } from './pages.ts'

/** A board of a kind that there is not: nothing is opened, whatever is asked. */
const NOWHERE = 'nowhere://here'
const UUID = '01935d5c-0000-7000-8000-000000000000'

interface Typed {
  readonly page: string
  readonly line: string
}

const PAGES = await allPages()

/** Lines of scripts, and what stands inside of a sentence. */
const TYPED: readonly Typed[] = PAGES.flatMap(({ name, blocks, text }) => {
  const lines = blocks
    .filter(({ language }) => language === 'sh' || language === '')
    .flatMap(({ code }) => code.split('\n'))
  const inline = [...text.replace(/^```[\s\S]*?^```/gm, '').matchAll(/`([^`\n]+)`/g)].map(([, code = '']) => code)
  return [...lines, ...inline].map((line) => ({ page: name, line: line.replace(/ +# .*$/, '').trim() }))
})

/** Their own reference has its own tests, in `test/cli/`. */
const ELSEWHERE = ['docs/reference/cli.md', 'CHANGELOG.md']

/** Those that the dashboard shows, in texts that end with them. */
const SHOWN = [
  ...(await readFile(join(ROOT, 'src/ui/page/texts.ts'), 'utf8')).matchAll(/: (jobboard [a-z][^']+)'/g),
].map(([, line = '']) => ({ page: 'src/ui/page/texts.ts', line }))

const COMMANDS = unique(
  [...TYPED, ...SHOWN].filter(({ page, line }) => {
    return !ELSEWHERE.includes(page) && /^(npx )?jobboard [a-z]/.test(line) && !line.includes('…')
  }),
)

function unique(typed: readonly Typed[]): Typed[] {
  return [...new Map(typed.map((each) => [each.line, each])).values()]
}

/** They ask for no board, or say themselves what is wrong with it. */
const ALONE = ['init', 'dev', 'completion', 'doctor', 'logbook', 'config', 'board', 'sqlite']

let folder: string

beforeAll(async () => {
  await ensureBuilt()
  // Inside of the package, so that flows find it by its name.
  folder = await mkdtemp(join(ROOT, '.test-docs-'))
  const { blocks } = await readPage('docs/start/conductors.md')
  const flows = blocks.find(({ language }) => language === 'js')?.code ?? ''
  for (const name of ['flows.js', 'flows.mjs']) await writeFile(join(folder, name), flows)
})
afterAll(() => rm(folder, { recursive: true, force: true }))

test('there are commands', () => {
  expect(COMMANDS.length).toBeGreaterThan(15)
  expect(SHOWN.length).toBeGreaterThan(3)
})

test.each(COMMANDS)('$page: $line', async ({ line }) => {
  const argv = wordsOf(line)
  // A deployment is one of a file that is not here.
  const isAlone = ALONE.includes(argv[0] ?? '') || argv[1] === 'preview' || argv.includes('--deployment')
  const { code, said } = await typed(isAlone ? [...argv, '--help'] : argv)
  expect({ code, said }).toEqual(isAlone ? { code: 0, said: expect.any(String) } : { code: 2, said: TOLD })
})

/**
 * Whatever was typed was understood: what is wrong is the board. Or it was no more than named, in a sentence, and what it
 * needs is missing.
 */
const TOLD: unknown = expect.stringMatching(
  / nowhere:|missing required argument '(uuid|flow|id|keys?)'|--basic people: ENOENT|--flows |name the flow, or a file with --from/,
)

const context = processContext()

function wordsOf(line: string): string[] {
  const [command = ''] = line.replaceAll('\\|', '|').split(/ [|&;>]/)
  const words = [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([word, one, two]) => one ?? two ?? word)
  const argv = words
    .slice(words.indexOf('jobboard') + 1)
    .map((word) => word.replace(/^UUID$/, UUID).replace(/^FLOW$/, 'refused'))
  return argv.map((word, index) => (argv[index - 1] === '--board' ? NOWHERE : word))
}

async function typed(argv: readonly string[]): Promise<{ code: number; said: string }> {
  let said = ''
  const output: CliContext['stdout'] = {
    columns: undefined,
    failed: new AbortController().signal,
    write: (text) => {
      said += text
    },
    flush: async () => undefined,
  }
  const env = { JOBBOARD_BOARD: NOWHERE, JOBBOARD_PERSISTENCE: 'directory:./logbooks' }
  const here = {
    ...context,
    stdout: output,
    stderr: output,
    env,
    cwd: folder,
    readStdin: async () => '{}',
    openStdin: () => Readable.from([]),
  }
  return { code: await run(argv, here), said }
}

test('scripts of npm that a page names are there', async () => {
  const [project] = await projectFiles(describeProject({ name: 'my-jobs', typescript: false }))
  const manifests = [await readFile(join(ROOT, 'package.json'), 'utf8'), project?.text ?? '{}']
  const scripts = Object.assign({}, ...manifests.map((text) => (JSON.parse(text) as { scripts: object }).scripts))
  const named = TYPED.flatMap(({ line }) => [...line.matchAll(/npm run ([\w:]+)/g)].map(([, script = '']) => script))
  expect(named).not.toHaveLength(0)
  expect(named.filter((script) => !Object.hasOwn(scripts, script))).toEqual([])
})

test('packages are installed in versions that the package takes', async () => {
  const manifest = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Readonly<Record<string, object>>
  const known = Object.entries({ ...manifest['dependencies'], ...manifest['peerDependencies'] })
  const named = TYPED.flatMap(({ line }) => [...line.matchAll(/npm install (\w+@\S+)/g)].map(([, spec = '']) => spec))
  expect(named.length).toBeGreaterThan(2)
  // A range such as `>=8.11 <9` or `^7.0.0` takes what its major version begins with.
  const majors = known.map(([name, range]) => `${name}@${/\d+/.exec(String(range))?.[0]}`)
  expect(named.filter((spec) => !majors.includes(spec.split('.', 1)[0] ?? ''))).toEqual([])
})

test('benchmarks that a page names are there', async () => {
  const known = await readFile(join(ROOT, 'test/bench/main.ts'), 'utf8')
  const [{ text: readme } = { text: '' }] = PAGES
  const [, figures = ''] = readme.split('## Figures')
  const rows = [...figures.matchAll(/\| `(\w+)` \|$/gm)].map(([, name = '']) => name)
  const others = TYPED.flatMap(({ line }) =>
    [...line.matchAll(/npm run bench -- ([a-z-]+)/g)].map(([, name = '']) => name),
  )
  expect(rows.length).toBeGreaterThan(4)
  for (const name of [...rows, ...others]) expect(known).toContain(`  '${name}',\n`)
})
