/** The examples of the guide to security, against a server with TLS, users and ACLs: they print what their comments say. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readPage } from '../docs/pages.ts'
import { expectPrints, installedPackage, snippetsOf, transpile } from '../docs/snippets.ts'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { type SecureZooKeeper, startSecureZooKeeper } from '../support/zookeeper-secure.ts'

const SNIPPETS = snippetsOf(await readPage('docs/guides/security.md'))
const place = namespace('guide')

describe.skipIf(!zookeeperHosts)('the guide to security', () => {
  let folder: string
  let authority: Authority
  let secure: SecureZooKeeper

  beforeAll(async () => {
    folder = await installedPackage()
    authority = await createAuthority()
    secure = await startSecureZooKeeper({ authority, clientAuth: 'need', users: { bob: 'secret' } })
    const { cert, key } = await authority.issue({ commonName: 'bob' })
    const files = { 'ca.pem': authority.cert, 'client.pem': cert, 'client.key': key }
    for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
    await transpile(folder, SNIPPETS)
  })

  afterAll(async () => {
    await secure?.stop()
    await authority?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const here = (code: string) =>
    code
      .replace(/127\.0\.0\.1:2181\/(\w+)/g, `${zookeeperHosts}${place}-$1`)
      .replaceAll('zookeeper.example.com:2281', secure.secureHosts)

  test('has examples', () => {
    expect(SNIPPETS.length).toBeGreaterThan(2)
  })

  for (const snippet of SNIPPETS) {
    test(`example ${snippet.title}, prints what it says`, () => expectPrints(folder, snippet, here))
  }
})
