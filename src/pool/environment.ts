/**
 * The environment variables of children: the variables that programs need to run, and the ones that the user names. Credentials in the
 * environment of the pool's process are not passed on.
 */
import { InvalidArgument } from '../core/errors.ts'

/** Names of variables, in which `*` at the end stands for any text. */
const ALLOWED: readonly string[] = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'HOSTNAME', 'LANG', 'LANGUAGE', 'LC_*', 'TZ', 'TERM', 'COLORTERM'],
  ...['TMPDIR', 'TMP', 'TEMP', 'XDG_CACHE_HOME', 'XDG_CONFIG_HOME', 'XDG_DATA_HOME', 'XDG_RUNTIME_DIR'],
  ...['NODE_ENV', 'NODE_OPTIONS', 'NODE_PATH', 'NODE_EXTRA_CA_CERTS', 'NODE_ICU_DATA', 'NODE_NO_WARNINGS'],
  ...['NODE_COMPILE_CACHE', 'NODE_DISABLE_COMPILE_CACHE', 'NODE_PENDING_DEPRECATION', 'NODE_V8_COVERAGE'],
  ...[
    'NODE_USE_SYSTEM_CA',
    'NODE_USE_ENV_PROXY',
    'NODE_DEBUG',
    'UV_THREADPOOL_SIZE',
    'TSX_*',
    'NO_COLOR',
    'FORCE_COLOR',
  ],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'LD_LIBRARY_PATH', 'DYLD_LIBRARY_PATH', 'NO_PROXY'],
  ...['SYSTEMROOT', 'SYSTEMDRIVE', 'WINDIR', 'COMSPEC', 'PATHEXT', 'APPDATA', 'LOCALAPPDATA', 'USERPROFILE'],
  ...['HOMEDRIVE', 'HOMEPATH', 'PROGRAMDATA', 'PROGRAMFILES*', 'COMMONPROGRAMFILES*', 'NUMBER_OF_PROCESSORS', 'OS'],
]

const NAME = /^[A-Za-z_][\w()]*\*?$/

/** Checks the names of the option `env`. @throws InvalidArgument */
export function toVariableNames(names: unknown): readonly string[] {
  const isList = Array.isArray(names) && names.every((name) => typeof name === 'string' && NAME.test(name))
  if (isList) return names
  throw new InvalidArgument(
    "pool.env must be a list of names of environment variables, as in ['DATABASE_URL', 'AWS_*']: a * at the end stands for any text",
  )
}

/** Returns the variables that children get. @param more the names that the user adds */
export function childEnvironment(env: NodeJS.ProcessEnv, more: readonly string[]): NodeJS.ProcessEnv {
  const isWindows = process.platform === 'win32'
  const fold = (name: string) => (isWindows ? name.toUpperCase() : name)
  const names = [...ALLOWED, ...more].map(fold)
  const whole = new Set(names.filter((name) => !name.endsWith('*')))
  const starts = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  const isPassed = (name: string) => whole.has(name) || starts.some((start) => name.startsWith(start))
  return Object.fromEntries(Object.entries(env).filter(([name]) => isPassed(fold(name))))
}
