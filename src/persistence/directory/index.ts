/** Logbooks in files: `directory:DIR`. */
import { resolve } from 'node:path'
import { InvalidArgument } from '../../core/errors.ts'
import { assertParameters, type ResourceUri } from '../../core/uri.ts'
import type { Persistence } from '../persistence.ts'
import { DirectoryPersistence } from './directory-persistence.ts'

/**
 * Returns logbooks in a folder. @throws InvalidArgument when the URI names no folder of this machine, or has an unknown
 * parameter
 */
export function directoryPersistence(uri: ResourceUri, options: { readonly create?: boolean } = {}): Persistence {
  assertParameters(uri, ['share'])
  if (uri.authority || uri.path === '' || uri.path.includes('\0')) {
    throw new InvalidArgument(
      `${uri.printable}: the URI must name a folder of this machine; write directory:DIR as in directory:./logbooks`,
    )
  }
  const share = uri.parameters.get('share')
  if (share !== undefined && share !== 'group')
    throw new InvalidArgument(`${uri.printable}: share must be 'group', got '${share}'`)
  return new DirectoryPersistence({
    uri: uri.printable,
    root: resolve(uri.path),
    shared: share === 'group',
    ...options,
  })
}
