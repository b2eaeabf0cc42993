/** Participants that are shown while their session lives. */

export interface BackendEntities {
  /**
   * Registers an entity for as long as the session lasts. It replaces an entity of the same name and instance.
   *
   * @throws Duplicate while another living instance has the name
   */
  register(entity: Entity): Promise<void>
  unregister(entity: Entity): Promise<void>
  list(kind: string): Promise<Entity[]>
}

/** A participant that is shown on the board while its session lives, such as a conductor. */
export interface Entity {
  readonly kind: string
  readonly name: string
  /** The id by which an object distinguishes its own entity, left by an earlier session, from the entity of another object. */
  readonly instance: string
  readonly metadata: Readonly<Record<string, unknown>>
}
