from bakeoff.models.dropouts import with_dropout
from bakeoff.recipe_files import load_recipe


def test_every_dropout_that_a_model_has_gets_the_new_rate():
    model = with_dropout(load_recipe("t5-base").model, 0.3)
    assert (model.dropout, model.output_dropout) == (0.3, 0.3)
    assert (model.encoder.block.ffn.dropout, model.decoder.block.ffn.dropout) == (0.3, 0.3)
    model = with_dropout(load_recipe("light-wmt").model, 0.0)
    block = model.decoder.block
    assert (block.mixer.weight_dropout, block.mixer.input_dropout, block.cross.dropout, model.dropout) == (0, 0, 0, 0)


def test_parts_without_dropout_stay_without():
    model = with_dropout(load_recipe("transformer-base").model, 0.3)
    assert (model.dropout, model.encoder.block.mixer.dropout, model.encoder.block.ffn.dropout) == (0.3, 0.0, 0.0)
    assert with_dropout(load_recipe("conv-light-base").model, 0.1).dropout == 0.1  # whose own is 0
