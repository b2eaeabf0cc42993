/** Certificates for a test: an authority, and whoever it vouches for. Made by the `openssl` program, deleted at the end. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Certificate {
  /** PEM. */
  readonly cert: string
  readonly key: string
}

export interface Authority extends AsyncDisposable {
  readonly cert: string
  /** Where files may be put; gone when the authority is disposed of. */
  readonly folder: string
  /** @param options.names as in `DNS:localhost,IP:127.0.0.1` */
  issue(options: { readonly commonName: string; readonly names?: string }): Promise<Certificate>
}

const run = promisify(execFile)
const DAYS = '2'

export async function createAuthority(): Promise<Authority> {
  const folder = await mkdtemp(join(tmpdir(), 'jobboard-certificates-'))
  const file = (name: string) => join(folder, name)
  const openssl = (...args: string[]) => run('openssl', args, { cwd: folder })
  const newKey = ['-newkey', 'rsa:2048', '-nodes']
  await openssl(
    ...['req', '-x509', ...newKey, '-days', DAYS, '-subj', '/CN=Test Authority'],
    ...['-keyout', 'ca.key', '-out', 'ca.crt'],
  )
  let issued = 0
  return {
    folder,
    cert: await readFile(file('ca.crt'), 'utf8'),
    issue: async ({ commonName, names }) => {
      const name = `issued-${issued++}`
      await writeFile(file(`${name}.ext`), names ? `subjectAltName=${names}\n` : '')
      await openssl('req', ...newKey, '-subj', `/CN=${commonName}`, '-keyout', `${name}.key`, '-out', `${name}.csr`)
      await openssl(
        ...['x509', '-req', '-in', `${name}.csr`, '-days', DAYS, '-extfile', `${name}.ext`, '-out', `${name}.crt`],
        ...['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial'],
      )
      return { cert: await readFile(file(`${name}.crt`), 'utf8'), key: await readFile(file(`${name}.key`), 'utf8') }
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
