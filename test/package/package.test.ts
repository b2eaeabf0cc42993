/** The package: what is in it, how it is entered, and the first ten minutes of a stranger who has installed it. */
import { readdir, readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { jsonLines } from '../cli/workplace.ts'
import { ROOT } from '../support/build.ts'
import { count } from '../support/counts.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { type NodeVersion, nodeFolder } from '../support/nodes.ts'
import { startPostgres } from '../support/postgres.ts'
import { startRedis } from '../support/redis.ts'
import { type InstalledPackage, installPackage, type Packed, pack } from './packed.ts'

let packed: Packed
let user: InstalledPackage

beforeAll(async () => {
  packed = await pack()
  user = await installPackage(packed.tarball)
})

afterAll(async () => {
  await user?.[Symbol.asyncDispose]()
  await packed?.[Symbol.asyncDispose]()
})

/** What may be in it, and what that is good for. */
const KINDS: readonly RegExp[] = [
  /^(package\.json|README\.md|LICENSE|CHANGELOG\.md|SECURITY\.md)$/,
  /^dist\/[\w/-]+\.(js|d\.ts)$/,
  // Read at run time; a thread of a child process is started without loaders.
  /^(dist|src)\/([\w/-]+\.(lua|sql)|pool\/lifeline\.mjs)$/,
  // What the dashboard's server gives to browsers.
  /^dist\/ui\/page\/(manifest\.json|app-[A-Z0-9]{8}\.(js|css)(\.(br|gz))?)$/,
  // For editors: what jobboard.yaml may have. The build makes it.
  /^dist\/cli\/input\/config\/schema\.json$/,
  // So that stack traces and debuggers show what was written.
  /^(dist\/[\w/-]+\.js\.map|src\/[\w/-]+(\.d)?\.ts)$/,
  // What the README and the docstrings lead to.
  /^docs\/[\w/-]+\.(md|svg)$/,
  // For Prometheus.
  /^docs\/(alerts\.yml|grafana\.json)$/,
  /^examples\/[\w/-]+(\.test)?\.(ts|mjs|txt|md|yaml)$/,
  // What `jobboard init` writes.
  /^templates\/(javascript|typescript|project)\/[\w.]+$/,
  /^docker\/(README\.md|Dockerfile|compose\.yaml|healthcheck\.mjs|flows\/(package\.json|flows\.js)|k8s\/[\w/]+\.yaml)$/,
]

describe('the tarball', () => {
  test('holds only what is of use to those who install it', () => {
    expect(packed.files.filter((file) => !KINDS.some((kind) => kind.test(file)))).toEqual([])
    expect(packed.files.length).toBeGreaterThan(1_000)
  })

  test('holds all of it', async () => {
    const all = await readdir(join(ROOT, 'src'), { recursive: true })
    // The page is one script and one style sheet in the package.
    const sources = all.filter((name) => !name.startsWith('ui/page/'))
    const modules = sources.filter((name) => name.endsWith('.ts') && !name.endsWith('.d.ts'))
    const made = modules.flatMap((name) => {
      const stem = name.slice(0, -'.ts'.length)
      return [`src/${name}`, `dist/${stem}.js`, `dist/${stem}.d.ts`, `dist/${stem}.js.map`]
    })
    const scripts = sources.filter((name) => /\.(lua|sql)$/.test(name)).map((name) => `dist/${name}`)
    expect(scripts.length).toBeGreaterThan(20)
    const files = new Set(packed.files)
    const must = [
      'LICENSE',
      'README.md',
      'CHANGELOG.md',
      'package.json',
      'examples/README.md',
      'docker/README.md',
      ...(await readdir(join(ROOT, 'templates'), { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile())
        .map((entry) => relative(ROOT, join(entry.parentPath, entry.name))),
      ...made,
      ...scripts,
      ...Object.values(await pageFiles()).flatMap((name) =>
        ['', '.br', '.gz'].map((end) => `dist/ui/page/${name}${end}`),
      ),
    ]
    expect(must.filter((file) => !files.has(file))).toEqual([])
  })

  test('says nothing of the machine on which it was made', async () => {
    const told = await Promise.all(
      packed.files
        .filter((file) => file.startsWith('dist/'))
        .map(async (file) => ((await readFile(join(ROOT, file), 'utf8')).includes(ROOT) ? [file] : [])),
    )
    expect(told.flat()).toEqual([])
  })

  test('is made anew when it is published', async () => {
    const { scripts } = await manifest()
    expect(scripts['prepack']).toContain("fs.rmSync('dist'")
    expect(scripts['prepack']).toContain('npm run build')
  })
})

describe('the ways in', () => {
  test('are there, each with its types, and all are modules', async () => {
    const { type, exports, bin } = await manifest()
    expect(type).toBe('module')
    expect(Object.keys(exports).sort()).toEqual([
      '.',
      './package.json',
      './schema.json',
      './testing',
      './ui',
      './zookeeper',
    ])
    const targets = Object.entries(exports).flatMap(([door, target]) => {
      if (typeof target === 'string') return [target]
      expect(Object.keys(target), door).toEqual(['types', 'default'])
      return Object.values(target)
    })
    const files = new Set(packed.files.map((file) => `./${file}`))
    expect([...targets, `./${bin['jobboard']}`].filter((target) => !files.has(target))).toEqual([])
    expect(packed.files.filter((file) => /^dist\/.*\.(cjs|cts|mjs|mts)$/.test(file))).toEqual([
      'dist/pool/lifeline.mjs',
    ])
  })

  test('open for import alone, and nowhere else', async () => {
    const program = `
      import { openBoard } from 'jobboard'
      import { workbench } from 'jobboard/testing'
      import { ZooKeeper } from 'jobboard/zookeeper'
      import manifest from 'jobboard/package.json' with { type: 'json' }
      import schema from 'jobboard/schema.json' with { type: 'json' }
      console.log(typeof openBoard, typeof workbench, typeof ZooKeeper, manifest.name, schema.title)
      await import('jobboard/dist/board/index.js').catch((error) => console.log(error.code))`
    await user.write('ways.mjs', program)
    expect(await user.run('node --no-warnings ways.mjs')).toBe(
      'function function function jobboard jobboard.yaml\nERR_PACKAGE_PATH_NOT_EXPORTED\n',
    )
  })

  test('open for require(), too, which Node.js gives modules without a top-level await', async () => {
    const program = `
      const doors = ['jobboard', 'jobboard/testing', 'jobboard/ui', 'jobboard/zookeeper'].map((door) => Object.keys(require(door)).length > 0)
      console.log(doors.join(' '), require('jobboard/package.json').name)`
    await user.write('ways.cjs', program)
    expect(await user.run('node --no-warnings ways.cjs')).toBe('true true true true jobboard\n')
  })

  test('lead to nothing that is for this project alone', async () => {
    await user.write('names.mjs', `console.log(Object.keys(await import('jobboard')).join(' '))`)
    const names = (await user.run('node --no-warnings names.mjs')).split(' ')
    expect(names).toContain('openBoard')
    for (const name of ['boardId', 'isOutage', 'memoryTestBackend', 'redisServerInfo', 'isOfOtherBoard'])
      expect(names).not.toContain(name)
  })

  test.each([
    ['NodeNext', { module: ts.ModuleKind.NodeNext, moduleResolution: ts.ModuleResolutionKind.NodeNext }],
    ['a bundler', { module: ts.ModuleKind.ESNext, moduleResolution: ts.ModuleResolutionKind.Bundler }],
  ])('have types, as %s finds them, and take no others', async (_, resolution) => {
    await user.write('typed.ts', TYPED)
    expect(complaints(join(user.folder, 'typed.ts'), resolution)).toEqual([])
  })
})

/** What the compiler says of the file and of our declarations; Node's and the language's are not looked at. */
function complaints(file: string, resolution: ts.CompilerOptions): string[] {
  const program = ts.createProgram([file], {
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
    types: ['node'],
    strict: true,
    noEmit: true,
    ...resolution,
  })
  const ours = program
    .getSourceFiles()
    .filter(({ fileName }) => fileName === file || fileName.includes('/jobboard/dist/'))
  const found = [...program.getOptionsDiagnostics(), ...program.getGlobalDiagnostics()].concat(
    ours.flatMap((source) => [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)]),
  )
  expect(ours.length).toBeGreaterThan(50)
  return found.map(({ file: where, messageText }) => {
    return `${where?.fileName}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
  })
}

/** Every error that is expected is one: nothing is `any`. */
const TYPED = `
import { input, linear, openBoard, runFlow, task, type Job } from 'jobboard'
import { workbench } from 'jobboard/testing'
import { ZooKeeper } from 'jobboard/zookeeper'

const greet = task('greet', { requires: ['name'], provides: 'text', execute: ({ name }: { name: string }) => name.length })
const hello = linear('hello', input<{ name: string }>(), greet)
const length: number = (await runFlow(hello, { name: 'Ada' })).results.text
// @ts-expect-error: the name is a text
await runFlow(hello, { name: 7 })
// @ts-expect-error: no such option
await openBoard('memory:', { wo: 'me' })
await using bench = await workbench({ flows: [hello] })
const job: Job = await bench.board.post(hello, { name: 'Ada' })
// @ts-expect-error: a clock is turned by a time
bench.clock.advance('soon')
const client: ZooKeeper = new ZooKeeper({ hosts: '127.0.0.1:2181' })
export { client, job, length }
`

/** The time for a dozen programs, or an installation, on a machine that is busy. */
const SLOW_MS = 300_000

const VERSIONS: readonly NodeVersion[] = ['own', '22', '24']

// Where there is no ZooKeeper the run says so: see JOBBOARD_SKIP.
describe.skipIf(!zookeeperHosts)('the first ten minutes', () => {
  test.each(VERSIONS.slice(0, count({ test: 1, long: VERSIONS.length })))(
    'on Node %s',
    { timeout: SLOW_MS },
    async (version) => {
      const path = await nodeFolder(version)
      const env = {
        JOBBOARD_BOARD: `zookeeper://${zookeeperHosts}${namespace('stranger')}`,
        JOBBOARD_PERSISTENCE: `directory:${join(user.folder, `logbooks-${version}`)}`,
      }
      const run = (line: string) => user.run(line, { env, path })
      if (version !== 'own') expect(await run('node --version')).toMatch(`v${version}.`)

      // The ten lines of the README.
      const quickStart = await firstOf('README.md', 'ts')
      await user.write('quick-start.ts', quickStart)
      expect(await run('npx --no-install tsx quick-start.ts')).toBe('Hello, Ada!\nCOMPLETE\n')

      // Posting.
      const flows = await firstOf('docs/start/conductors.md', 'js')
      await user.write('flows.mjs', flows)
      const jobboard = 'node_modules/.bin/jobboard'
      const post = async (rest: string) => (await run(`${jobboard} post ${rest}`)).trim()
      const done = await post(`hello --flows ./flows.mjs --store '{"name":"Ada"}'`)
      const refused = await post('refused --flows ./flows.mjs')
      const unwanted = await post(`hello --flows ./flows.mjs --store '{"name":"Bob"}'`)

      // Giving up, and thinking better of it.
      await run(`${jobboard} cancel ${unwanted}`)
      expect(await inTrash(run)).toEqual([unwanted])
      await run(`${jobboard} trash restore ${unwanted}`)
      expect(await inTrash(run)).toEqual([])

      // A conductor, until all are over.
      const waits = [done, refused, unwanted].map((uuid) => `${jobboard} wait ${uuid} >>ends.txt`).join('; ')
      const conductor = `${jobboard} conductor --flows ./flows.mjs >said.txt 2>log.txt`
      await run(`${conductor} & conductor=$!; ${waits}; kill -INT $conductor; wait $conductor`)
      expect(await run('grep Hello said.txt | sort')).toBe('Hello, Ada!\nHello, Bob!\n')

      // Looking.
      expect(await run(`${jobboard} show ${done}`)).toMatch(/^greet +SUCCESS/m)
      expect(await run(`${jobboard} track ${unwanted}`)).toContain('"Hello, Bob!"')
      expect(await inTrash(run)).toEqual([refused])
      expect(await run(`${jobboard} jobs --json`)).toBe('')
    },
  )
})

/** The oldest drivers that the package says it takes; all other tests run with the newest. */
const OLDEST = { pg: '8.11.0', ioredis: '5.4.1' } as const

describe('an application with drivers of its own', () => {
  test('installs the package beside the oldest that it takes, and works with them', { timeout: SLOW_MS }, async () => {
    const { peerDependencies } = await manifest()
    expect(peerDependencies).toMatchObject({ pg: '>=8.11 <9', ioredis: '>=5.4 <6' })
    const beside = Object.entries(OLDEST).map(([name, version]) => `${name}@${version}`)
    await using app = await installPackage(packed.tarball, { beside })
    await using postgres = await startPostgres()
    await using redis = await startRedis()
    await app.write(
      'life.mjs',
      `
      import { readFile } from 'node:fs/promises'
      import { openBoard } from 'jobboard'
      for (const name of ['pg', 'ioredis'])
        console.log(JSON.parse(await readFile(\`node_modules/\${name}/package.json\`, 'utf8')).version)
      for (const uri of process.argv.slice(2)) {
        const board = await openBoard(uri)
        const job = await board.post('flow', { n: 1 }, { resources: { exclusive: ['disk'] } })
        const [claim] = await board.claimNext()
        await claim.consume()
        console.log(await job.wait())
        await board.close()
      }`,
    )
    const said = await app.run(`node life.mjs '${postgres.uri}?board=old' '${redis.uri}/0?prefix=old'`)
    expect(said.trim().split('\n')).toEqual([OLDEST.pg, OLDEST.ioredis, 'COMPLETE', 'COMPLETE'])
  })
})

type Run = (line: string) => Promise<string>

async function inTrash(run: Run): Promise<string[]> {
  const listed = await run('node_modules/.bin/jobboard trash list --json')
  return jsonLines(listed).map((trashed) => (trashed as { uuid: string }).uuid)
}

/** The first example in a language on a page. */
async function firstOf(page: string, language: string): Promise<string> {
  const text = await readFile(join(ROOT, page), 'utf8')
  const code = new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, 'm').exec(text)?.[1]
  if (code === undefined) throw new Error(`${page} has no example in ${language}`)
  return code
}

interface Manifest {
  readonly type: string
  readonly exports: Readonly<Record<string, string | Readonly<Record<string, string>>>>
  readonly bin: Readonly<Record<string, string>>
  readonly scripts: Readonly<Record<string, string>>
  readonly peerDependencies: Readonly<Record<string, string>>
}

/** Returns the names of the script and the style sheet of the dashboard. */
async function pageFiles(): Promise<Record<'script' | 'style', string>> {
  return JSON.parse(await readFile(join(ROOT, 'dist/ui/page/manifest.json'), 'utf8')) as Record<
    'script' | 'style',
    string
  >
}

async function manifest(): Promise<Manifest> {
  return JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as Manifest
}
