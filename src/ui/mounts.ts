/**
 * The mounts at which requests have reached a dashboard without a configured mount. A path below a known mount is not accepted as another
 * mount: otherwise a request for `/jobs/x/api/` would bypass a rule of the application for `/jobs/api/`, because the dashboard would take
 * `/jobs/x` for its mount.
 */
const MAX_MOUNTS = 20

/** The known mounts of one dashboard. */
export class Mounts {
  readonly #known = new Set<string>()

  /** Whether the dashboard answers below this path. */
  allows(mount: string): boolean {
    for (const known of this.#known) if (mount !== known && isBelow(mount, known)) return false
    return true
  }

  /** Notes the mount of a request that was authenticated. */
  note(mount: string): void {
    if (this.#known.has(mount)) return
    for (const known of this.#known) if (isBelow(known, mount)) this.#known.delete(known)
    this.#known.add(mount)
    if (this.#known.size > MAX_MOUNTS) for (const oldest of this.#known) return void this.#known.delete(oldest)
  }
}

function isBelow(path: string, mount: string): boolean {
  return path.startsWith(`${mount}/`)
}
