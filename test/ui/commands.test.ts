import { expect, test } from 'vitest'
import { withoutPassword } from '../../src/ui/boards/commands.ts'

test.each([
  ['zookeeper://ada:***@one:2181,two:2181/acme/jobs', 'zookeeper://one:2181,two:2181/acme/jobs'],
  ['zookeeper://one:2181/jobs', 'zookeeper://one:2181/jobs'],
  ['postgres://ada:***@host/db?board=jobs&password=***', 'postgres://ada@host/db?board=jobs'],
  ['postgres://ada@host/db?password=***&board=jobs', 'postgres://ada@host/db?board=jobs'],
  ['zookeepers://one:2281/jobs?passphrase=***&auth=***&ca=ca.pem', 'zookeepers://one:2281/jobs?ca=ca.pem'],
  ['rediss://:***@host:6380/0?prefix=jobs', 'rediss://host:6380/0?prefix=jobs'],
])('a command to be copied has %s as a URI that the command line can use', (shown, copied) => {
  expect(withoutPassword(shown)).toBe(copied)
})
