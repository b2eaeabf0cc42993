/** A standalone ZooKeeper with a second port for TLS, and with SASL. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Authority } from './certificates.ts'
import { freePort } from './ports.ts'
import { startZooKeeper, type ZooKeeperServer } from './zookeeper.ts'

export interface SecureOptions {
  /** Vouches for the server, which is called `localhost` and nothing else, and for its clients. */
  readonly authority: Authority
  /** Whether clients must show a certificate. */
  readonly clientAuth: 'none' | 'need'
  /** Passwords by user name. */
  readonly users: Readonly<Record<string, string>>
  /** Further lines for `zoo.cfg`. */
  readonly config?: Readonly<Record<string, string | number | boolean>>
}

export interface SecureZooKeeper extends ZooKeeperServer {
  /** `localhost:PORT`, with TLS. `hosts` is without. */
  readonly secureHosts: string
  readonly securePort: number
}

export async function startSecureZooKeeper(options: SecureOptions): Promise<SecureZooKeeper> {
  const { authority, clientAuth, users } = options
  const { cert, key } = await authority.issue({ commonName: 'localhost', names: 'DNS:localhost' })
  const securePort = await freePort()
  const file = (name: string) => join(authority.folder, `${securePort}-${name}`)
  const entries = Object.entries(users).map(([user, password]) => `user_${user}="${password}"`)
  const login = 'org.apache.zookeeper.server.auth.DigestLoginModule'
  await writeFile(file('server.pem'), key + cert)
  await writeFile(file('trust.pem'), authority.cert)
  await writeFile(file('jaas.conf'), `Server { ${login} required ${entries.join(' ')}; };\n`)
  const server = await startZooKeeper({
    java: [`-Djava.security.auth.login.config=${file('jaas.conf')}`],
    config: {
      secureClientPort: securePort,
      secureClientPortAddress: '127.0.0.1',
      serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
      'ssl.keyStore.location': file('server.pem'),
      'ssl.keyStore.type': 'PEM',
      'ssl.trustStore.location': file('trust.pem'),
      'ssl.trustStore.type': 'PEM',
      'ssl.clientAuth': clientAuth,
      'authProvider.sasl': 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider',
      ...options.config,
    },
  })
  return Object.defineProperties(server, {
    securePort: { value: securePort },
    secureHosts: { value: `localhost:${securePort}` },
  }) as SecureZooKeeper
}
