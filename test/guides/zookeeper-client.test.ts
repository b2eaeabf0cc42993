/** The examples of the guide to the ZooKeeper client: they run against real servers, and print what their comments say. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { ZooKeeper } from '../../src/zookeeper/index.ts'
import { readPage } from '../docs/pages.ts'
import { expectPrints, installedPackage, snippetsOf, transpile } from '../docs/snippets.ts'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { type SecureZooKeeper, startSecureZooKeeper } from '../support/zookeeper-secure.ts'

const GUIDE = await readPage('docs/guides/zookeeper-client.md')
const SNIPPETS = snippetsOf(GUIDE)

describe.skipIf(!zookeeperHosts)('the guide to the ZooKeeper client', () => {
  let folder: string
  let authority: Authority
  let secure: SecureZooKeeper

  beforeAll(async () => {
    folder = await installedPackage()
    authority = await createAuthority()
    secure = await startSecureZooKeeper({ authority, clientAuth: 'need', users: { bob: 'secret' } })
    const { cert, key } = await authority.issue({ commonName: 'bob' })
    await Promise.all([
      writeFile(join(folder, 'ca.pem'), authority.cert),
      writeFile(join(folder, 'client.pem'), cert),
      writeFile(join(folder, 'client.key'), key),
    ])
    await transpile(folder, SNIPPETS)
  })

  afterAll(async () => {
    await secure?.stop()
    await authority?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  for (const snippet of SNIPPETS) {
    test(`example ${snippet.title}, prints what it says`, async () => {
      const hosts = await emptyPlace()
      const here = (text: string) =>
        text.replaceAll('127.0.0.1:2181', hosts).replace('zookeeper.example.com:2281', secure.secureHosts)
      await expectPrints(folder, snippet, here)
    })
  }
})

/** A chroot that nobody else uses. */
async function emptyPlace(): Promise<string> {
  const hosts = `${zookeeperHosts}${namespace('guide')}`
  await using client = new ZooKeeper({ hosts })
  await client.connect()
  await client.mkdirp('/')
  return hosts
}
