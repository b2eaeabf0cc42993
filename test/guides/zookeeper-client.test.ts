/** The examples of the guide to the ZooKeeper client: they run against real servers, and print what their comments say. */
import { rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { NATIVE_CAPABILITIES, ZooKeeper } from '../../src/zookeeper/index.ts'
import { readPage } from '../docs/pages.ts'
import { expectPrints, installedPackage, snippetsOf, transpile } from '../docs/snippets.ts'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { COMPILING_LIMIT_MS, ensureNativePackage, NATIVE_FOLDER, nativeLeftOut } from '../support/native-package.ts'
import { type SecureZooKeeper, startSecureZooKeeper } from '../support/zookeeper-secure.ts'

const GUIDE = await readPage('docs/guides/zookeeper-client.md')
const SNIPPETS = snippetsOf(GUIDE)

describe.skipIf(!zookeeperHosts)('the guide to the ZooKeeper client', () => {
  let folder: string
  let authority: Authority
  let secure: SecureZooKeeper

  beforeAll(async () => {
    if (!nativeLeftOut) await ensureNativePackage()
    folder = await installedPackage()
    await symlink(join(NATIVE_FOLDER, 'node_modules/zookeeper'), join(folder, 'node_modules/zookeeper'))
    authority = await createAuthority()
    secure = await startSecureZooKeeper({ authority, clientAuth: 'need', users: { bob: 'secret' } })
    const { cert, key } = await authority.issue({ commonName: 'bob' })
    await Promise.all([
      writeFile(join(folder, 'ca.pem'), authority.cert),
      writeFile(join(folder, 'client.pem'), cert),
      writeFile(join(folder, 'client.key'), key),
    ])
    await transpile(folder, SNIPPETS)
  }, COMPILING_LIMIT_MS)

  afterAll(async () => {
    await secure?.stop()
    await authority?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  for (const snippet of SNIPPETS) {
    const { title, native } = snippet
    test.skipIf(native && nativeLeftOut)(`example ${title}, prints what it says`, async () => {
      const hosts = await emptyPlace()
      const here = (text: string) =>
        text.replaceAll('127.0.0.1:2181', hosts).replace('zookeeper.example.com:2281', secure.secureHosts)
      await expectPrints(folder, snippet, here)
    })
  }

  test('it names every capability that the native driver lacks', () => {
    const lacking = Object.entries(NATIVE_CAPABILITIES).filter(([, has]) => !has)
    expect(lacking.length).toBeGreaterThan(5)
    for (const [capability] of lacking) expect(GUIDE.text).toContain(`\`${capability}\``)
  })
})

/** A chroot that nobody else uses. */
async function emptyPlace(): Promise<string> {
  const hosts = `${zookeeperHosts}${namespace('guide')}`
  await using client = new ZooKeeper({ hosts })
  await client.connect()
  await client.mkdirp('/')
  return hosts
}
