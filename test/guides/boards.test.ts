/** The examples of the guide to boards: they compile, and they print what their comments say. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { type Authority, createAuthority } from '../support/certificates.ts'
import { namespace, zookeeperHosts } from '../support/namespace.ts'
import { type SecureZooKeeper, startSecureZooKeeper } from '../support/zookeeper-secure.ts'
import { compile, expectPrints, guideOf, snippetsOf, strangersPackage } from './snippets.ts'

const SNIPPETS = snippetsOf(await guideOf('boards'))
const place = namespace('guide')

describe('the guide to boards', () => {
  let folder: string
  let authority: Authority | undefined
  let secure: SecureZooKeeper | undefined

  beforeAll(async () => {
    folder = await strangersPackage()
    if (zookeeperHosts) {
      authority = await createAuthority()
      secure = await startSecureZooKeeper({ authority, clientAuth: 'need', users: { bob: 'secret' } })
      const { cert, key } = await authority.issue({ commonName: 'bob' })
      const files = { 'ca.pem': authority.cert, 'client.pem': cert, 'client.key': key }
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
    }
    await compile(folder, SNIPPETS)
  })

  afterAll(async () => {
    await secure?.stop()
    await authority?.[Symbol.asyncDispose]()
    await rm(folder, { recursive: true, force: true })
  })

  const here = (code: string) =>
    code
      .replace(/127\.0\.0\.1:2181\/(\w+)/g, `${zookeeperHosts}${place}-$1`)
      .replaceAll('zookeeper.example.com:2281', secure?.secureHosts ?? '')

  for (const [index, { title, code }] of SNIPPETS.entries()) {
    const isElsewhere = /zookeepers?:\/\//.test(code)
    test.skipIf(isElsewhere && !zookeeperHosts)(`example ${title}, prints what it says`, () =>
      expectPrints(folder, { number: index + 1, code, here }),
    )
  }
})
