export function Person({ name }: { name: string }) {
  const letters = name
    .split(/[ ._-]+/)
    .map((part) => part[0] ?? "")
    .join("")
    .slice(0, 2)
    .toUpperCase();
  return (
    <>
      <span class="avatar" aria-hidden="true">
        {letters}
      </span>
      {name}
    </>
  );
}
