/** The ways to sign in to the dashboard, from the flags of `jobboard ui`. */
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { InvalidArgument } from '../../core/errors.ts'
import {
  basicAccess,
  type DashboardOptions,
  type Level,
  oneTimeLink,
  tokenAccess,
  trustedHeader,
} from '../../ui/index.ts'
import { isLoopback, localAccess } from '../../ui/internal.ts'
import type { CliContext } from '../context.ts'

export interface AccessFlags {
  readonly host?: string
  readonly auth?: 'link' | 'none'
  readonly token?: string
  readonly basic?: string
  readonly trustHeader?: string
  readonly trustedProxy?: readonly string[]
  readonly level?: Level
  readonly hideValues?: boolean
  readonly allowedHost?: readonly string[]
}

export interface ChosenAccess {
  /** Undefined where everybody who reaches the dashboard may do everything. */
  readonly authorize: DashboardOptions['authorize'] | undefined
  /** The token of the link that is printed. */
  readonly linkToken?: string
  /** A line for people. */
  readonly note?: string
}

/**
 * Returns the way to sign in.
 *
 * @throws InvalidArgument for several ways, for a file that cannot be read, and for an address of other machines without a way that was chosen
 */
export async function toAccess(flags: AccessFlags, context: Pick<CliContext, 'env' | 'cwd'>): Promise<ChosenAccess> {
  const { host = '127.0.0.1', allowedHost, auth, basic, trustHeader, trustedProxy, level = 'admin' } = flags
  const { hideValues = false } = flags
  const token =
    flags.token || (auth || basic || trustHeader ? undefined : context.env['JOBBOARD_UI_TOKEN']) || undefined
  const given = { '--auth': auth, '--token': token, '--basic': basic, '--trust-header': trustHeader }
  const named = Object.entries(given).flatMap(([flag, value]) => (value === undefined ? [] : [flag]))
  if (named.length > 1) throw new InvalidArgument(`${named.join(' and ')} are ways to sign in: give one of them`)
  if (trustedProxy && trustHeader === undefined)
    throw new InvalidArgument('--trusted-proxy needs --trust-header NAME, the header that the proxy sets')
  const isReachable = !isLoopback(host)
  if (isReachable && (named.length === 0 || auth === 'none'))
    throw new InvalidArgument(
      `--host ${host} can be reached from other machines, and nobody would have to sign in: give --token, --basic, --trust-header or --auth link`,
    )
  if (auth === 'none' && allowedHost && allowedHost.length > 0)
    throw new InvalidArgument(
      '--auth none is for this machine only, and --allowed-host is a name for other machines: give --auth link, --token, --basic or --trust-header',
    )
  const granted = { level, values: !hideValues }
  if (basic !== undefined) return { authorize: basicAccess(await readPeople(resolve(context.cwd, basic), basic)) }
  if (trustHeader !== undefined)
    return { authorize: trustedHeader({ header: trustHeader, proxies: trustedProxy ?? [], ...granted }) }
  if (token !== undefined)
    return {
      authorize: tokenAccess(token, granted),
      note: 'sign in with ?token=TOKEN behind the address, once for each browser',
    }
  if (auth === 'none') return { authorize: localAccess({ who: 'local', ...granted }) }
  const link = oneTimeLink(granted)
  return {
    authorize: link,
    linkToken: link.token,
    note: 'the link works once; the browser stays signed in until this command ends',
  }
}

/** @throws InvalidArgument */
async function readPeople(path: string, name: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    throw new InvalidArgument(
      `--basic ${name}: ${(cause as NodeJS.ErrnoException).code}; jobboard ui password makes its lines`,
      { cause },
    )
  }
}
