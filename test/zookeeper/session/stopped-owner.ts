/** A process that holds a session and says what becomes of it, for the test that stops it. */
import { ZooKeeper } from '../../../src/zookeeper/index.ts'

const [hosts = '', path = ''] = process.argv.slice(2)
const say = (line: string) => process.stdout.write(`${line}\n`)

const client = new ZooKeeper({ hosts, sessionTimeout: '2s' })
client.on('state', ({ state }) => say(state))
await client.connect()
await client.create(path, null, { ephemeral: true })
say('holding')
for (;;) {
  const { state } = client
  if (state !== 'connected') break
  await client.sync(path).then(
    () => say('answered'),
    () => undefined,
  )
}
await client.close()
