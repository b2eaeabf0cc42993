/** The guides' examples: they compile, they run against real servers, and they print what their comments say. */
import { execFile } from 'node:child_process'
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NATIVE_CAPABILITIES, ZooKeeper } from '../src/zookeeper/index.ts'
import { ensureBuilt, ROOT } from './support/build.ts'
import { type Authority, createAuthority } from './support/certificates.ts'
import { namespace, zookeeperHosts } from './support/namespace.ts'
import { NATIVE_FOLDER, nativeLeftOut, nativePackage } from './support/native-package.ts'
import { type SecureZooKeeper, startSecureZooKeeper } from './support/zookeeper-secure.ts'

const GUIDE = await readFile(join(ROOT, 'docs/guides/zookeeper-client.md'), 'utf8')

interface Snippet {
  readonly title: string
  readonly code: string
  readonly native: boolean
}

const SNIPPETS: readonly Snippet[] = [...GUIDE.matchAll(/^```ts( native)?\n([\s\S]*?)^```/gm)].map((found, index) => ({
  title: `${index + 1}, under ${GUIDE.slice(0, found.index)
    .match(/^## .*$/gm)
    ?.at(-1)
    ?.slice(3)}`,
  code: found[2] ?? '',
  native: found[1] !== undefined,
}))

/** The comments behind what prints, and those that have a line for themselves, in order. */
function promised(code: string): string[] {
  return [...code.matchAll(/^(?:.*console\.log\(.*\) )?\/\/ (.*)$/gm)].map((found) => found[1] ?? '')
}

describe.skipIf(!zookeeperHosts)('the guide to the ZooKeeper client', () => {
  let folder: string
  let authority: Authority
  let secure: SecureZooKeeper

  beforeAll(async () => {
    await ensureBuilt()
    folder = await strangersPackage()
    authority = await createAuthority()
    secure = await startSecureZooKeeper({ authority, clientAuth: 'need', users: { bob: 'secret' } })
    const { cert, key } = await authority.issue({ commonName: 'bob' })
    await Promise.all([
      writeFile(join(folder, 'ca.pem'), authority.cert),
      writeFile(join(folder, 'client.pem'), cert),
      writeFile(join(folder, 'client.key'), key),
    ])
    await Promise.all(SNIPPETS.map(({ code }, index) => writeFile(join(folder, `${index + 1}.mts`), code)))
  })

  afterAll(async () => {
    await secure?.stop()
    await authority?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  test('its examples compile', async () => {
    const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
    await expect(promisify(execFile)(process.execPath, [tsc, '-p', folder], { cwd: folder })).resolves.toBeDefined()
  })

  for (const [index, { title, code, native }] of SNIPPETS.entries()) {
    test.skipIf(native && nativeLeftOut)(`example ${title}, prints what it says`, async () => {
      if (native) await nativePackage()
      const hosts = await emptyPlace()
      const run = code.replaceAll('127.0.0.1:2181', hosts).replace('zookeeper.example.com:2281', secure.secureHosts)
      const file = `${index + 1}-run.mts`
      await writeFile(join(folder, file), run)
      const { stdout, stderr } = await promisify(execFile)(process.execPath, ['--import', 'tsx', file], { cwd: folder })
      const printed = stdout.split('\n').map((line) => line.trimEnd())
      expect({ printed, stderr }).toEqual({ printed: [...promised(code), ''], stderr: '' })
    })
  }

  test('it names every capability that the native driver lacks', () => {
    const lacking = Object.entries(NATIVE_CAPABILITIES).filter(([, has]) => !has)
    expect(lacking.length).toBeGreaterThan(5)
    for (const [capability] of lacking) expect(GUIDE).toContain(`\`${capability}\``)
  })
})

/** Somebody else's package that has installed ours, as it is published, and the `zookeeper` package beside it. */
async function strangersPackage(): Promise<string> {
  const folder = await mkdtemp(join(ROOT, '.test-guide-'))
  const ours = join(folder, 'node_modules/jobboard')
  await mkdir(ours, { recursive: true })
  await cp(join(ROOT, 'dist'), join(ours, 'dist'), { recursive: true })
  await cp(join(ROOT, 'package.json'), join(ours, 'package.json'))
  await symlink(join(NATIVE_FOLDER, 'node_modules/zookeeper'), join(folder, 'node_modules/zookeeper'))
  await writeFile(join(folder, 'package.json'), JSON.stringify({ name: 'stranger', private: true, type: 'module' }))
  const compilerOptions = {
    target: 'es2023',
    lib: ['es2023', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    strict: true,
    noEmit: true,
  }
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, include: ['*.mts'], exclude: ['*-run.mts'] }),
  )
  return folder
}

/** A chroot that nobody else uses. */
async function emptyPlace(): Promise<string> {
  const hosts = `${zookeeperHosts}${namespace('guide')}`
  await using client = new ZooKeeper({ hosts })
  await client.connect()
  await client.mkdirp('/')
  return hosts
}
