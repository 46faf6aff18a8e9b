"""Real mesh files, as robots bring them."""

import pytest

pytest.importorskip("igl")
import mesh_survey


@pytest.mark.slow
def test_the_meshes_of_real_robots_load_weigh_and_tell_inside_from_outside():
    rows = list(mesh_survey.survey())
    if not rows:
        pytest.skip("none of the packages of the extra test-assets is installed")
    print(mesh_survey.summary(rows))
    refused = [row for row in rows if row.refusal]
    assert len(refused) < 0.05 * len(rows), [row.refusal for row in refused]
    assert all(";" in row.refusal or "Give" in row.refusal or "Try" in row.refusal for row in refused)
    failed = [(str(row.path), row.mass, row.wrong_signs) for row in rows if not row.refusal and not row.passed]
    assert not failed
