/** Requested resources on a command line: `--exclusive disk --shared net`. */
import type { Resources } from '../../board/index.ts'

export interface ResourceFlags {
  readonly exclusive?: readonly string[]
  readonly shared?: readonly string[]
}

/** Returns the properties to spread into the options of a post. */
export function toResourceOptions({ exclusive, shared }: ResourceFlags): { readonly resources?: Resources } {
  if (!exclusive && !shared) return {}
  return {
    resources: { ...(exclusive ? { exclusive: [...exclusive] } : {}), ...(shared ? { shared: [...shared] } : {}) },
  }
}
